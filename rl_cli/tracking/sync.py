"""Uploading runs later: those that were recorded offline, and those that W&B has not got whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from rl_cli.core.errors import BadUsage
from rl_cli.runs.lock_holder import who_holds
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import StateWriter, is_over
from rl_cli.runs.store import list_runs
from rl_cli.runs.supervision.tracking_mode import has_key
from rl_cli.runs.tracking_file import is_only_played, recorded, what_is_lacking, write_tracking
from rl_cli.tracking.ask import Asker
from rl_cli.tracking.catch_up import one_round
from rl_cli.tracking.read_back import ReadBack, conclusion

LOCK_SECONDS = 90.0
"""A supervisor that has written the end may still be uploading."""
TOTAL_SECONDS = 900.0
"""All of it, for one run: what is left then comes with the next call."""
ANSWER_SECONDS = 30.0
ROUND_SECONDS = 300.0
QUIET_SECONDS = 30.0
"""A round that has brought nothing for this long is ended."""
VAIN_SECONDS = 55.0
"""No further round is begun once nothing has come for this long."""
LOOK_EVERY_SECONDS = 5.0
MOST_VAIN_ROUNDS = 3
"""Rounds in a row that bring nothing."""


@dataclass(frozen=True)
class Synced:
    """What W&B has of a run, by what was read back."""

    run: str
    rows: int
    uploaded: int
    files_lacking: list[str]
    complete: bool
    lacks: str
    """In words, e.g. `3 of 20 rows and 1 file (config.yaml)`; empty if nothing is known to lack."""
    error: str | None
    url: str | None
    hopeless: bool
    """W&B itself was the trouble, or took nothing although it had the time: so it would with others."""


def need_sync(home: str) -> tuple[list[RunDir], list[RunDir]]:
    """Runs that are over and have rows which W&B is not known to have, oldest first.

    Returns:
        Those to upload, and replays that are only uploaded when they are named.
    """
    found = [run for run in reversed(list_runs(home)) if _needs(run)]
    played = [run for run in found if is_only_played(run)]
    return [run for run in found if run not in played], played


def _needs(run: RunDir) -> bool:
    state = run.state()
    if state.get("backend") == "wandb" or not is_over(state):
        return False
    record = recorded(run)
    return record is not None and record["state"] != "done" and bool(record.get("rows"))


def sync_run(
    run: RunDir, seconds: float = TOTAL_SECONDS, told: Callable[[str], None] = lambda line: None
) -> Synced:
    """Uploads what W&B lacks of a run, and reads it back.

    Args:
        run: The run; over.
        seconds: After so many no further round is begun, and the one that goes on is ended.
        told: Gets a line about how it goes.

    Raises:
        BadUsage: There is no key, or the run goes on.
    """
    if not has_key():
        raise BadUsage("there is no W&B key", "set WANDB_API_KEY, or run `wandb login`")
    state = run.state()
    if state.get("backend") == "wandb":
        raise BadUsage(f"{run.id} is W&B's own run: it is only watched here")
    if not is_over(state):
        raise BadUsage(f"{run.id} goes on ({state['state']})", "W&B gets the rest at its end")
    try:
        with _held(run, told) as writer, Asker() as asker:
            back = ReadBack(run, asker)
            in_vain = _bring(back, time.monotonic() + seconds, told)
            record = conclusion(back, (recorded(run) or {}).get("mode") or "offline")
            write_tracking(run, record)
            _note(run, writer, record)
    except TimeoutError:
        raise BadUsage(f"{run.id} is not free: {who_holds(run)}", "try again once that is done") from None
    return Synced(
        run=run.id,
        rows=record["rows"],
        uploaded=record["uploaded"],
        files_lacking=record.get("files_lacking", []),
        complete=record["state"] == "done",
        lacks=what_is_lacking(record),
        error=record["error"],
        url=record["url"],
        hopeless=in_vain or back.is_hopeless(),
    )


@contextmanager
def _held(run: RunDir, told: Callable[[str], None]) -> Iterator[StateWriter]:
    """The run's lock; tells whoever waits for it why.

    Raises:
        TimeoutError: Nobody lets go of it.
    """
    with ExitStack() as stack:
        try:
            writer = stack.enter_context(run.locked(timeout=1))
        except TimeoutError:
            told(f"{run.id}: waiting, {who_holds(run)}")
            writer = stack.enter_context(run.locked(timeout=LOCK_SECONDS))
        yield writer


def _note(run: RunDir, writer: StateWriter, record: dict[str, Any]) -> None:
    """Says with the run, once, where W&B has it now; alerts that it lacks rows are settled then."""
    whole, url = record["state"] == "done", record["url"]
    known = [event for event in run.events() if event.get("kind") == "wandb" and event.get("url") == url]
    told = any(event.get("message") for event in known)
    if not url or told or (known and not whole) or writer.state.get("damaged"):
        return
    said = {"message": f"sent later: all {record['rows']} rows are there"} if whole else {}
    run.append_event("wandb", mode=record["mode"], url=url, **said)
    settled = {"settled": "W&B got all rows later"} if whole else {}
    alerts = [
        {**alert, **settled} if alert.get("rule") == "wandb" else alert
        for alert in writer.state.get("alerts") or []
    ]
    writer.update(wandb_url=url, alerts=alerts)


def _bring(back: ReadBack, until: float, told: Callable[[str], None]) -> bool:
    """Uploads in rounds; returns whether W&B answered, and took nothing for as long as it was given."""
    back.look_here()
    vain, began = 0, time.monotonic()
    while vain < MOST_VAIN_ROUNDS and (left := until - time.monotonic()) > 0:
        if not back.look_there(min(ANSWER_SECONDS, left)):
            return False
        if _is_all_there(back):
            return False
        told(_how_far(back))
        lacking, progress = _lacking(back), _Progress(back, told)
        one_round(back, min(ROUND_SECONDS, until - time.monotonic()), True, progress.is_stuck)
        back.look_there(ANSWER_SECONDS)
        vain = 0 if _lacking(back) < lacking else vain + 1
        if time.monotonic() - max(began, back.grew) > VAIN_SECONDS:
            return not _is_all_there(back)
    return False


def _lacking(back: ReadBack) -> int:
    return len(back.lacking()) + len(back.lacking_files())


def _is_all_there(back: ReadBack) -> bool:
    return back.is_whole() and back.end_is_told()


def _how_far(back: ReadBack) -> str:
    rows, files = len(back.wanted), len(back.lacking_files())
    without = f", {files} files not yet" if files else ""
    return f"{back.run.id}: W&B has {rows - len(back.lacking())} of {rows} rows{without}"


class _Progress:
    """Looks now and then at what a round has brought, and tells it. Args: as in `_bring`."""

    def __init__(self, back: ReadBack, told: Callable[[str], None]) -> None:
        self.back, self.told = back, told
        self.began = self.looked = time.monotonic()

    def is_stuck(self) -> bool:
        """Whether the round is in vain, because nothing has come for so long, or has nothing left to do."""
        if time.monotonic() - self.looked < LOOK_EVERY_SECONDS:
            return False
        lacking = _lacking(self.back)
        answered = self.back.look_there(ANSWER_SECONDS)
        self.looked = time.monotonic()
        quiet = round(self.looked - max(self.began, self.back.grew))
        why = f"nothing new for {quiet} s" if answered else f"no answer ({self.back.error})"
        self.told(_how_far(self.back) + ("" if _lacking(self.back) < lacking else f", {why}"))
        return quiet > QUIET_SECONDS or _is_all_there(self.back)
