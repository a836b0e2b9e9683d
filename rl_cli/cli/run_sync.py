"""`rl-cli runs sync`: uploads to W&B what it lacks of runs that are over."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from rl_cli.cli.app import JsonOption
from rl_cli.cli.event_lines import counted
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
    from rl_cli.runs.supervision.tracking_mode import has_key
    from rl_cli.tracking.sync import Synced, need_sync, sync_run

    if not has_key():
        raise BadUsage("there is no W&B key", "set WANDB_API_KEY, or run `wandb login`")
    if runs:
        chosen = [find_run(home(), text) for text in runs]
    else:
        chosen, played = need_sync(str(home()))
        if played:
            names = ", ".join(run.id for run in played)
            print(f"skipped, because replays are uploaded only when they are named: {names}", file=sys.stderr)
    done: list[Synced] = []
    for run in chosen:
        done.append(sync_run(run, told=lambda line: print(line, file=sys.stderr)))
        if done[-1].hopeless:
            break
    if json_:
        print_json_lines([asdict(one) for one in done])
    else:
        rows = [[one.run, f"{one.uploaded}/{one.rows}", one.url or "-", one.error or ""] for one in done]
        print_table(["run", "rows", "url", "trouble"], rows, empty="W&B has all of every run that is over")
    if left := sum(not one.complete for one in done):
        untried = len(chosen) - len(done)
        more = f"; {counted(untried, 'more runs')} not tried" if untried else ""
        raise WorkFailed(
            f"W&B has not got all of {counted(left, 'runs')}{more}", "all is kept here; try again later"
        )
