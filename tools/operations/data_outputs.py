"""Tools: rows made to fit a number of tokens, and rows as files for trainers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from tools.dispatcher import CallContext, Estimate, Risk, tool
from tools.operations.data_batches import find
from tools.operations.data_rows import Which, rows_file

Format = Literal["trl", "sharegpt", "parquet", "hf", "atif"]
EXTRACTIVE = "extractive"
BAD_LINES = 5
"""That are told one by one."""


def _risk(context: CallContext, arguments: dict[str, Any]) -> Risk:
    return "write" if arguments["summarizer"] == EXTRACTIVE else "spend"


def _estimate(context: CallContext, arguments: dict[str, Any]) -> Estimate:
    """What summaries of a model would cost at most."""
    from rl_cli.data.jobs.compressing import estimate_compression

    folder = find(context, arguments["name"])
    rows, dollars = estimate_compression(folder, arguments)
    return Estimate(
        where="this computer, with requests to the model's server",
        dollars=dollars,
        basis="estimated tokens of the rows, at most",
        what="make rows fit, in the background",
        scope={"batch": folder.name, "summarizer": arguments["summarizer"], "rows": rows},
    )


@tool(toolset="data", risk="spend", deadline=180, exclusive=True, estimate=_estimate, risk_of=_risk)
async def data_compress(
    context: CallContext,
    name: str | None = None,
    max_tokens: Annotated[int, Field(ge=200)] = 15_250,
    tokenizer: str = "estimate",
    summarizer: str = EXTRACTIVE,
) -> dict[str, Any]:
    """Make the merged rows of a batch fit a number of tokens: turns in the middle become one summary.

    Every row is in the output, in the same order. It goes on by itself even if this conversation ends; asking
    again goes on where it stopped. Next: data_status with wait=true.

    Args:
        name: The batch; without it, the one of this conversation, else the newest.
        max_tokens: What a conversation has to fit.
        tokenizer: Of the model to be trained: its name on the Hugging Face hub, a folder, tiktoken:NAME, or
            estimate.
        summarizer: Who writes summaries: a model as provider/name, which costs money, or extractive, which
            is free and offline.
    """
    from rl_cli.data.jobs.compressing import compression_of
    from rl_cli.data.jobs.job import Job
    from rl_cli.data.jobs.launch import begin_job

    folder = await asyncio.to_thread(find, context, name)
    output = compression_of(folder, max_tokens).output
    order = {"max_tokens": max_tokens, "tokenizer": tokenizer, "summarizer": summarizer}
    state = await begin_job(Job(folder, "compress"), order)
    context.state["batch"] = folder.name
    return {"name": folder.name, "state": state.get("state"), "output": str(output)}


@tool(toolset="data", risk="write", deadline=1800)
async def data_export(
    context: CallContext,
    format: Format,
    name: str | None = None,
    which: Which = "merged",
    output: Path | None = None,
    dedupe: Literal["exact", "near"] | None = None,
    pii: bool = False,
) -> dict[str, Any]:
    """Export rows of a batch for training. Secrets are masked. What is there already is never replaced.

    Args:
        format: trl (messages and tools), sharegpt (from/value), parquet, hf (a folder for datasets), or atif.
        name: The batch; without it, the one of this conversation, else the newest.
        which: The merged rows, or the compressed ones.
        output: A folder, or a file that ends in .jsonl or .parquet; default: in the batch's folder.
        dedupe: Leave out rows that are equal, or nearly so, to earlier ones.
        pii: Mask personal data too.
    """
    from rl_cli.data.export.exporting import export
    from rl_cli.data.export.source import Source
    from rl_cli.data.hygiene.duplicates import NEAR, Duplicates
    from rl_cli.data.hygiene.masking import Masker
    from rl_cli.data.hygiene.pii import KINDS

    folder = await asyncio.to_thread(find, context, name)
    source = Source(rows_file(folder, which), folder.name)
    bad: list[str] = []
    report = await asyncio.to_thread(
        export,
        source,
        format,
        output or _free_place(folder.path, format, which),
        Masker(True, KINDS if pii else ()),
        Duplicates(NEAR if dedupe == "near" else None) if dedupe else None,
        lambda number, reason: bad.append(f"line {number}: {reason}"),
    )
    return {**report.to_dict(), **({"bad": bad[:BAD_LINES]} if bad else {})}


def _free_place(folder: Path, format_: Format, which: Which) -> Path:
    """`trl`, `compressed-trl`, `compressed-trl-2` ... in the batch's exports."""
    exports = folder / "exports"
    exports.mkdir(exist_ok=True)
    stem = format_ if which == "merged" else f"{which}-{format_}"
    suffix = ".parquet" if format_ == "parquet" else ""
    taken = {path.name for path in exports.iterdir()}
    names = (f"{stem}{f'-{n}' if n > 1 else ''}{suffix}" for n in range(1, len(taken) + 2))
    return exports / next(name for name in names if name not in taken)
