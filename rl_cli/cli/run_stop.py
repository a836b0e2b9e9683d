"""`rl-cli runs stop` on a run of somebody else: W&B is asked."""

from __future__ import annotations

import asyncio
from typing import Any

from rl_cli.cli.output import print_json, say
from rl_cli.core.errors import WorkFailed
from rl_cli.runs.watched import path_of
from rl_cli.tracking.stopping import request_stop


def stop_watched(run: Any, reason: str, as_json: bool) -> None:
    """Asks W&B to stop it, and says that this is a request.

    Args:
        run: The RunDir of a watched run.
        reason: Kept with the run.
        as_json: One JSON object: requested, state, note.

    Raises:
        WandbError: W&B was not asked.
        WorkFailed: It did not confirm the request.
    """
    answer = asyncio.run(request_stop(path_of(run)))
    if answer["requested"]:
        run.append_event("stop_requested", by="user", reason=reason, now=False)
    if as_json:
        print_json(answer)
    else:
        say(f"{run.id}: {answer['state']} at W&B; {answer['note']}")
    if answer["requested"] is None:
        raise WorkFailed(f"W&B did not confirm that {run.id} is to stop", answer["note"])
