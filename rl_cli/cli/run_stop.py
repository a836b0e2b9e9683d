"""What `rl-cli runs stop` says while it waits, and how it stops a run of somebody else: W&B is asked."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from rl_cli.cli.output import print_json, say
from rl_cli.runs.launch import grace_seconds
from rl_cli.runs.times import seconds_of
from rl_cli.runs.watched import path_of


def tell_of_wait(run: Any) -> None:
    """Says on stderr that a stop takes a while, and when it is over at the latest.

    Args:
        run: The RunDir of a run that trains.
    """
    asked = seconds_of((run.stop_requested() or {}).get("time")) or time.time()
    clock = time.strftime("%H:%M:%S", time.localtime(asked + grace_seconds(run)))
    print(
        f"{run.id} may save and be evaluated until {clock}, then it is ended; waiting for that. "
        "Ctrl-C leaves the request standing; --now ends it at once",
        file=sys.stderr,
    )


def stop_watched(run: Any, reason: str, as_json: bool) -> None:
    """Asks W&B to stop it, and says that this is a request.

    Args:
        run: The RunDir of a watched run.
        reason: Kept with the run.
        as_json: One JSON object: requested, state, note.

    Raises:
        WandbError: W&B was not asked, or did not confirm the request.
    """
    from rl_cli.tracking.stopping import request_stop

    answer = asyncio.run(request_stop(path_of(run)))
    if answer["requested"]:
        run.append_event("stop_requested", by="user", reason=reason, now=False)
    if as_json:
        print_json(answer)
    else:
        say(f"{run.id}: {answer['state']} at W&B; {answer['note']}")
