"""`rl-cli runs clean`: what runs have left behind, shown first, removed with --yes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from rl_cli.cli.app import JsonOption
from rl_cli.cli.output import print_json, print_table, say
from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.core.settings import home

UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def clean_command(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN...]", help="Remove these runs, with all they hold.")
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="7d", help="Only runs over for so long (m, h, d, w)."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove it; else it is only shown.")] = False,
    json_: JsonOption = False,
) -> None:
    """Show what runs have left behind; --yes removes it. Runs that go on, and what is not known, stay."""
    from rl_cli.runs.clean import find_leftovers, remove, whole_run
    from rl_cli.runs.store import find_run, list_runs

    age = 0.0 if older_than is None else _seconds(older_than)
    if runs and older_than is not None:
        raise BadUsage("--older-than chooses among all runs; it goes with no RUN")
    folder = Path(home())
    named = {run.id: run for run in (find_run(folder, text) for text in runs or [])}
    if named:
        found = [one for run in named.values() for one in whole_run(run)]
    else:
        found = list(find_leftovers(folder, list_runs(folder), age))
    problems = remove(folder, found) if yes else []
    total = sum(one.bytes for one in found)
    if json_:
        items = [one.to_dict() for one in found]
        print_json({"items": items, "bytes": total, "removed": yes, "problems": problems})
    else:
        rows = [[one.kind, one.run or "-", one.what, _size(one.bytes)] for one in found]
        heads = ["to remove" if named else "left behind", "run", "what", "size"]
        print_table(heads, rows, empty="nothing is left behind")
        for run in named.values() if not yes else ():
            if warning := _only_copy(run):
                say(f"warning: {warning}")
        if found:
            say(f"{'freed' if yes else 'would free'} {_size(total)}" + ("" if yes else "; --yes removes it"))
    if problems:
        raise WorkFailed("not all of it could be removed: " + "; ".join(problems))


def _only_copy(run: Any) -> str | None:
    """That a run is nowhere else; None where W&B has it, or nothing was trained."""
    from rl_cli.runs.tracking_file import read_tracking

    tracking = read_tracking(run) or {}
    if run.state().get("backend") != "trl" or tracking.get("state") == "done":
        return None
    return f"{run.id} ({run.state()['state']}) was not uploaded: this is the only copy"


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    if not match:
        raise BadUsage(f"--older-than {text!r} is no time", "a number with m, h, d or w, for example 7d")
    return int(match[1]) * UNITS[match[2]]


def _size(count: int) -> str:
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"
