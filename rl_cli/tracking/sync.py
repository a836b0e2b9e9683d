"""Uploading runs later: those that were recorded offline, and those that W&B has not got whole."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rl_cli.core.errors import BadUsage
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import is_over
from rl_cli.runs.store import list_runs
from rl_cli.runs.tracking_file import is_only_played, recorded, write_tracking
from rl_cli.runs.tracking_mode import has_key
from rl_cli.tracking.ask import Asker
from rl_cli.tracking.catch_up import one_round
from rl_cli.tracking.read_back import ReadBack, conclusion

LOCK_SECONDS = 90.0
"""A supervisor that has written the end may still be uploading."""
ANSWER_SECONDS = 30.0
ROUND_SECONDS = 300.0
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
        with run.locked(timeout=LOCK_SECONDS), Asker() as asker:
            back = ReadBack(run, asker)
            _bring(back, time.monotonic() + seconds, told)
    except TimeoutError:
        raise BadUsage(f"{run.id} is being uploaded or resumed at this moment", "try again later") from None
    mode = (recorded(run) or {}).get("mode") or "offline"
    record = conclusion(back, mode)
    write_tracking(run, record)
    complete = record["state"] == "done"
    rows, uploaded = record["rows"], record["uploaded"]
    return Synced(run.id, rows, uploaded, complete, record["error"], record["url"], back.is_hopeless())


def _bring(back: ReadBack, until: float, told: Callable[[str], None]) -> None:
    back.look_here()
    vain = 0
    while vain < MOST_VAIN_ROUNDS and (left := until - time.monotonic()) > 0:
        if not back.look_there(min(ANSWER_SECONDS, left)):
            return
        lacking = len(back.lacking())
        if not lacking and back.end_is_told():
            return
        told(f"{back.run.id}: W&B has {len(back.wanted) - lacking} of {len(back.wanted)} rows")
        one_round(back, min(ROUND_SECONDS, until - time.monotonic()), over=True)
        back.look_there(ANSWER_SECONDS)
        vain = 0 if len(back.lacking()) < lacking else vain + 1
