"""`rl-cli data merge`: which of a batch's rows become training data."""

from __future__ import annotations

from typing import Annotated

import typer

from rl_cli.cli.app import JsonOption
from rl_cli.cli.data_stats import NameArgument, list_missing, print_summary, warn
from rl_cli.cli.output import print_json
from rl_cli.core.errors import WorkFailed


def merge(
    name: NameArgument,
    require_reasoning: Annotated[
        bool, typer.Option("--require-reasoning", help="Discard rows without any reasoning.")
    ] = False,
    keep_invented: Annotated[
        bool, typer.Option("--keep-invented", help="Keep rows that call tools which do not exist.")
    ] = False,
    drop_empty: Annotated[
        bool, typer.Option("--drop-empty", help="Discard rows whose last answer is empty.")
    ] = False,
    drop_incomplete: Annotated[
        bool, typer.Option("--drop-incomplete", help="Discard rows that a limit ended.")
    ] = False,
    min_score: Annotated[
        float | None,
        typer.Option(help="Discard rows below this score, or without one. [default: the batch's]"),
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Make trajectories.jsonl, discarded.jsonl and statistics.json of all that a batch has asked so far.

    It costs nothing, and can be repeated with other filters: what was paid for stays in the ledger. Where
    samples are missing, they are listed, and the exit code is 1.
    """
    from rl_cli.data.batch.filters import Filters
    from rl_cli.data.batch.folder import find_batch
    from rl_cli.data.batch.merge import merge as merge_batch

    folder = find_batch(name)
    least = folder.config().min_score if min_score is None else min_score
    filters = Filters.chosen(require_reasoning, keep_invented, drop_empty, drop_incomplete, least)
    statistics = merge_batch(folder, filters)
    if json_:
        print_json(statistics)
    else:
        print_summary({**statistics, "dir": str(folder.path)})
    warn(statistics, running=folder.state().get("state") == "running")
    list_missing(statistics)
    if statistics["pending"]:
        raise WorkFailed(
            f"{statistics['pending']} samples are missing", f"ask them: rl-cli data resume {name}"
        )
