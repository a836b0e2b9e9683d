"""Asking W&B to stop a run."""

from __future__ import annotations

from typing import Any

from rl_cli.tracking.ask import ask_async
from rl_cli.tracking.errors import WandbError

DEADLINE = 12.0
STATE_DEADLINE = 8.0
HEARD_SECONDS = 45
"""Until a run that logs online has heard of it, at most; one that logs offline never hears."""
UNSURE = ("slow", "down", "ended", "bad_answer")
"""After these errors the request may have been carried out all the same."""
AGAIN = "it may have been carried out all the same: look again before asking once more"


async def request_stop(path: str) -> dict[str, Any]:
    """Asks W&B to stop a run, at most twice; the state is read again before the second time.

    Args:
        path: entity/project/run.

    Returns:
        {"requested": true, false (it does not run), or null (not confirmed, but it does not run any more),
        "state": as W&B says, "note"}.

    Raises:
        WandbError: Nothing was asked; or it is not known whether it was (`unsure`, or why W&B does not
            answer at all), and the message says what is known.
    """
    for last in (False, True):
        try:
            found = await ask_async("stop", {"path": path}, DEADLINE)
        except WandbError as error:
            if error.kind not in UNSURE:
                raise
            now = await _state_after(path, error)
            if now["state"] != "running":
                note = f"W&B did not confirm it ({error.message}), and the run does not run any more"
                return {"requested": None, "state": now["state"], "note": note}
            if last:
                known = f"W&B did not confirm the stop ({error.message}) and says that the run is running"
                raise WandbError("unsure", known, AGAIN) from error
            continue
        note = f"a request: it stops within about {HEARD_SECONDS} s if it logs online, else it never hears it"
        if not found["requested"]:
            note = f"nothing was asked: W&B says that it is {found['state']}"
        return {"requested": found["requested"], "state": found["state"], "note": note}
    raise AssertionError("the second try returns or raises")


async def _state_after(path: str, error: WandbError) -> dict[str, Any]:
    try:
        return await ask_async("run_state", {"path": path}, STATE_DEADLINE)
    except WandbError:
        unsure = f"W&B did not confirm the stop ({error.message}) and does not say how the run is"
        raise WandbError(error.kind, unsure, AGAIN) from error
