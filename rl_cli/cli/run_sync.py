"""`rl-cli runs sync`: uploads to W&B what it lacks of runs that are over."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from rl_cli.cli.app import JsonOption
from rl_cli.cli.event_lines import counted
from rl_cli.cli.output import print_json_lines, print_table
from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.core.settings import home

if TYPE_CHECKING:
    from rl_cli.tracking.sync import Synced


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
    from rl_cli.tracking.sync import need_sync, sync_run

    if runs:
        chosen = [find_run(home(), text) for text in runs]
    else:
        chosen, played = need_sync(str(home()))
        if played:
            names = ", ".join(run.id for run in played)
            print(f"skipped, because replays are uploaded only when they are named: {names}", file=sys.stderr)
    if chosen and not has_key():
        raise BadUsage("there is no W&B key", "set WANDB_API_KEY, or run `wandb login`")
    done: list[Synced] = []
    for run in chosen:
        done.append(sync_run(run, told=lambda line: print(line, file=sys.stderr)))
        if done[-1].hopeless:
            break
    if json_:
        print_json_lines([asdict(one) for one in done])
    else:
        rows = [[one.run, f"{one.uploaded}/{one.rows}", one.url or "-", _trouble(one)] for one in done]
        print_table(["run", "rows", "url", "trouble"], rows, empty="W&B has all of every run that is over")
    if left := [one for one in done if not one.complete]:
        untried = len(chosen) - len(done)
        more = f"; {counted(untried, 'more runs')} not tried" if untried else ""
        later = " ".join(one.run for one in left)
        raise WorkFailed(_what_is_left(left) + more, f"all is kept here; later: rl-cli runs sync {later}")


def _trouble(one: Synced) -> str:
    return "" if one.complete else ": ".join(filter(None, (one.lacks and f"lacks {one.lacks}", one.error)))


def _what_is_left(left: list[Synced]) -> str:
    if len(left) > 1:
        rows = sum(one.uploaded < one.rows for one in left)
        files = sum(bool(one.files_lacking) for one in left)
        return (
            f"W&B has not got all of {counted(len(left), 'runs')}: it lacks rows of {rows}, files of {files}"
        )
    (one,) = left
    lacks = (
        f"W&B lacks {one.lacks} of {one.run}" if one.lacks else f"it is not known what W&B has of {one.run}"
    )
    return f"{lacks}: {one.error}"
