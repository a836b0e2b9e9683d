"""Tools: which rows of a batch become training data, their figures, and a few of them to read."""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tools.dispatcher import CallContext, ToolError, tool
from tools.operations.data_batches import find

if TYPE_CHECKING:
    from rl_cli.data.batch.folder import BatchFolder

Which = Literal["merged", "compressed", "discarded"]
MISSING = 10
"""Missing samples and evaluations that are listed."""
MOST_ENTRIES = 24
SHOWN = 600
"""Characters of one text of a sample."""
LONGEST_NAME = 100


@tool(toolset="data", risk="write")
async def data_merge(
    context: CallContext,
    name: str | None = None,
    require_reasoning: bool = False,
    keep_invented: bool = False,
    drop_empty: bool = False,
    drop_incomplete: bool = False,
    min_score: float | None = None,
) -> dict[str, Any]:
    """Choose which rows become training data. Costs nothing, and can be repeated with other filters.

    Args:
        name: The batch; without it, the one of this conversation, else the newest.
        require_reasoning: Discard rows without any reasoning.
        keep_invented: Keep rows that call tools which do not exist.
        drop_empty: Discard rows whose last answer is empty.
        drop_incomplete: Discard rows that a limit ended.
        min_score: Discard rows below this score, or without one; default: the batch's.
    """
    from rl_cli.data.batch.filters import Filters
    from rl_cli.data.batch.merge import merge

    folder = await asyncio.to_thread(find, context, name)
    least = folder.config().min_score if min_score is None else min_score
    filters = Filters.chosen(require_reasoning, keep_invented, drop_empty, drop_incomplete, least)
    found = await asyncio.to_thread(merge, folder, filters)
    return {**_compact(found), "file": str(folder.trajectories)}


@tool(toolset="data", risk="read")
async def data_stats(context: CallContext, name: str | None = None) -> dict[str, Any]:
    """Count what a batch has: samples, failures by reason, marks, tokens, cost, tools, scores.

    Args:
        name: The batch; without it, the one of this conversation, else the newest.
    """
    from rl_cli.data.batch.summary import summary

    folder = await asyncio.to_thread(find, context, name)
    return _compact(await asyncio.to_thread(summary, folder))


@tool(toolset="data", risk="read")
async def data_show_samples(
    context: CallContext,
    name: str | None = None,
    count: Annotated[int, Field(ge=1, le=10)] = 3,
    first: Annotated[int, Field(ge=1)] = 1,
    which: Which = "merged",
) -> dict[str, Any]:
    """Show a few rows of a batch: who said what, with calls and results. Long texts are cut.

    Args:
        name: The batch; without it, the one of this conversation, else the newest.
        count: How many.
        first: The number of the first, from 1.
        which: The merged rows, the compressed ones, or those that the merge discarded.
    """
    from rl_cli.data.export.source import Source

    folder = await asyncio.to_thread(find, context, name)
    path = rows_file(folder, which)

    def read() -> list[dict[str, Any]]:
        rows = Source(path, folder.name).rows(lambda number, why: None)
        return [_shown(row, n) for n, row in enumerate(islice(rows, first - 1, first - 1 + count), first)]

    return {"batch": folder.name, "which": which, "samples": await asyncio.to_thread(read)}


def rows_file(folder: BatchFolder, which: Which) -> Path:
    """The file of such rows.

    Raises:
        ToolError: There is none yet.
    """
    from rl_cli.data.jobs.compressing import output_of

    path = {
        "merged": folder.trajectories,
        "discarded": folder.discarded,
        "compressed": output_of(folder),
    }[which]
    if not path.exists():
        tool_name = "data_compress" if which == "compressed" else "data_merge"
        raise ToolError("no_rows", f"batch {folder.name} has no {which} rows yet", f"{tool_name} makes them")
    return path


def _compact(found: dict[str, Any]) -> dict[str, Any]:
    """Statistics without long lists and what is empty."""
    cut = {"missing": found.get("missing", [])[:MISSING], "evaluation": found["evaluation"][-MISSING:]}
    return {key: value for key, value in {**found, **cut}.items() if value not in (None, [], {})}


def _shown(row: dict[str, Any], number: int) -> dict[str, Any]:
    """A row to read; the dispatcher masks what is secret."""
    from rl_cli.core.cuts import ends, one_line
    from rl_cli.data.show.entries import entries, facts

    said = list(entries(row["messages"]))
    shown = [
        {"role": entry.role}
        | ({"tool": one_line(entry.tool, LONGEST_NAME)} if entry.tool else {})
        | {"text": ends(entry.text, SHOWN)}
        for entry in said[:MOST_ENTRIES]
    ]
    left = {"entries_left_out": len(said) - MOST_ENTRIES} if len(said) > MOST_ENTRIES else {}
    known = {name: one_line(value, SHOWN) for name, value in facts(row)}
    return {"number": number, **known, "entries": shown, **left}
