"""`rl-cli runs resume`: a run goes on from its last good checkpoint."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rl_cli.cli.app import JsonOption
from rl_cli.cli.output import print_json, say
from rl_cli.core.settings import home


def resume_command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Its id, a unique beginning of it, or 'latest'.")],
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="From here on, e.g. grpo.learning_rate=1e-4."),
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Go on with a run that is over, from its last good checkpoint.

    One whose trainer still runs is only watched over again.
    """
    from rl_cli.config.fields import read_assignments
    from rl_cli.runs.resuming.resume import resume_run
    from rl_cli.runs.store import find_run

    resumed = resume_run(find_run(home(), run), read_assignments(changes or []))
    for note in resumed.notes:
        print(f"note: {note}", file=sys.stderr)
    if json_:
        resume = {"attempt": resumed.attempt, "step": resumed.step, "attached": resumed.attached}
        print_json({**resumed.run.summary(), "resumed": {**resume, "notes": resumed.notes}})
    else:
        say(f"{resumed.run.id}: {resumed.sentence()}")
        print(f"rl-cli runs watch {resumed.run.id}", file=sys.stderr)
