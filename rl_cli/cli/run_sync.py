"""`rl-cli runs sync`: uploads to W&B what it lacks of runs that are over."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from rl_cli.cli.app import JsonOption
from rl_cli.cli.output import print_json_lines, print_table
from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.core.settings import home


def sync_command(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN]...", help="Default: every run that is over and not whole at W&B; no replays."
        ),
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Upload to W&B what it lacks of runs that are over.

    It is read back; the exit code is 1 where something is still missing.
    """
    from rl_cli.runs.store import find_run
    from rl_cli.runs.tracking_mode import has_key
    from rl_cli.tracking.sync import need_sync, sync_run

    if not has_key():
        raise BadUsage("there is no W&B key", "set WANDB_API_KEY, or run `wandb login`")
    if runs:
        chosen = [find_run(home(), text) for text in runs]
    else:
        chosen, played = need_sync(str(home()))
        if played:
            names = ", ".join(run.id for run in played)
            print(f"skipped, because replays are uploaded only when they are named: {names}", file=sys.stderr)
    done = [sync_run(run, told=lambda line: print(line, file=sys.stderr)) for run in chosen]
    if json_:
        print_json_lines([asdict(one) for one in done])
    else:
        rows = [[one.run, f"{one.uploaded}/{one.rows}", one.url or "-", one.error or ""] for one in done]
        print_table(["run", "rows", "url", "trouble"], rows, empty="W&B has all of every run that is over")
    left = [one.run for one in done if not one.complete]
    if left:
        raise WorkFailed(f"W&B has not got all of {', '.join(left)}", "it is kept here; try again later")
