"""Uploading runs later: those that were recorded offline, and those that W&B has not got whole."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rl_cli.core.errors import BadUsage
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import StateWriter, is_over
from rl_cli.runs.store import list_runs
from rl_cli.runs.supervision.tracking_mode import has_key
from rl_cli.runs.tracking_file import is_only_played, recorded, write_tracking
from rl_cli.tracking.ask import Asker
from rl_cli.tracking.catch_up import one_round
from rl_cli.tracking.read_back import ReadBack, conclusion

LOCK_SECONDS = 90.0
"""A supervisor that has written the end may still be uploading."""
ANSWER_SECONDS = 30.0
ROUND_SECONDS = 300.0
QUIET_SECONDS = 45.0
"""A round that has brought nothing for this long is ended."""
VAIN_SECONDS = 80.0
"""No further round is begun once nothing has come for this long."""
LOOK_EVERY_SECONDS = 8.0
MOST_VAIN_ROUNDS = 3
"""Rounds in a row that bring nothing."""


@dataclass(frozen=True)
class Synced:
    """What W&B has of a run, by what was read back."""

    run: str
    rows: int
    uploaded: int
    complete: bool
    error: str | None
    url: str | None
    hopeless: bool
    """W&B itself was the trouble: another run would fare no better."""


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


def sync_run(run: RunDir, seconds: float = 3600, told: Callable[[str], None] = lambda line: None) -> Synced:
    """Uploads what W&B lacks of a run, and reads it back.

    Args:
        run: The run; over.
        seconds: The bound of it all.
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
        with run.locked(timeout=LOCK_SECONDS) as writer, Asker() as asker:
            back = ReadBack(run, asker)
            _bring(back, time.monotonic() + seconds, told)
            record = conclusion(back, (recorded(run) or {}).get("mode") or "offline")
            write_tracking(run, record)
            _note(run, writer, record)
    except TimeoutError:
        raise BadUsage(f"{run.id} is being uploaded or resumed at this moment", "try again later") from None
    complete = record["state"] == "done"
    rows, uploaded = record["rows"], record["uploaded"]
    return Synced(run.id, rows, uploaded, complete, record["error"], record["url"], back.is_hopeless())


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


def _bring(back: ReadBack, until: float, told: Callable[[str], None]) -> None:
    back.look_here()
    vain, began = 0, time.monotonic()
    while vain < MOST_VAIN_ROUNDS and (left := until - time.monotonic()) > 0:
        if not back.look_there(min(ANSWER_SECONDS, left)):
            return
        lacking = len(back.lacking())
        if not lacking and back.end_is_told():
            return
        told(f"{back.run.id}: W&B has {len(back.wanted) - lacking} of {len(back.wanted)} rows")
        progress = _Progress(back, told)
        one_round(back, min(ROUND_SECONDS, until - time.monotonic()), True, progress.is_stuck)
        back.look_there(ANSWER_SECONDS)
        vain = 0 if len(back.lacking()) < lacking else vain + 1
        if time.monotonic() - max(began, back.grew) > VAIN_SECONDS:
            return


class _Progress:
    """Looks now and then at what a round has brought, and tells it. Args: as in `_bring`."""

    def __init__(self, back: ReadBack, told: Callable[[str], None]) -> None:
        self.back, self.told = back, told
        self.began = self.looked = time.monotonic()

    def is_stuck(self) -> bool:
        """Whether nothing has come for so long that the round is in vain."""
        if time.monotonic() - self.looked < LOOK_EVERY_SECONDS:
            return False
        lacking = len(self.back.lacking())
        answered = self.back.look_there(ANSWER_SECONDS)
        left, rows = len(self.back.lacking()), len(self.back.wanted)
        self.looked = time.monotonic()
        quiet = round(self.looked - max(self.began, self.back.grew))
        why = f"nothing new for {quiet} s" if answered else f"no answer ({self.back.error})"
        news = "" if left < lacking else f", {why}"
        self.told(f"{self.back.run.id}: W&B has {rows - left} of {rows} rows{news}")
        return quiet > QUIET_SECONDS
