"""Detached compression: the merged rows of a batch made to fit, in a file beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rl_cli.core.errors import BadUsage, Refused, WorkFailed
from rl_cli.core.settings import load_settings
from rl_cli.data.batch.folder import BatchFolder
from rl_cli.data.compression.extractive import EXTRACTIVE
from rl_cli.data.compression.interrupts import interruptible
from rl_cli.data.compression.job import Compression
from rl_cli.data.compression.plan import Limits
from rl_cli.data.compression.tokenizers import open_tokenizer
from rl_cli.data.compression.writer import writer_of
from rl_cli.data.compressor import Interrupted, compress, dry_run

COMPRESSED = "compressed.jsonl"


def output_of(folder: BatchFolder) -> Path:
    """Where the compressed rows of a batch lie."""
    return folder.path / COMPRESSED


def compression_of(folder: BatchFolder, max_tokens: int) -> Compression:
    """The compression of a batch's merged rows.

    Raises:
        BadUsage: They are not merged yet.
    """
    if not folder.trajectories.exists():
        raise BadUsage(f"the batch {folder.name} is not merged yet", "merge it first")
    return Compression((folder.trajectories,), output_of(folder), Limits(max_tokens))


def estimate_compression(folder: BatchFolder, order: dict[str, Any]) -> tuple[int, float | None]:
    """Rows that need a summary, and dollars at most for all of them; None: the price is not known.

    Tokens are estimated, so that nothing has to be fetched for it.

    Raises:
        BadUsage: The order cannot be carried out.
    """
    from environments.policies.base import Usage
    from rl_cli.spending.prices import price_list

    if order["summarizer"] == EXTRACTIVE:
        return 0, 0.0
    writer_of(order["summarizer"], f"compress-{folder.name}")
    job = compression_of(folder, order["max_tokens"])
    found = asyncio.run(dry_run(job, open_tokenizer("estimate")))
    used = Usage(found["tokens_before"], found["summaries"] * job.limits.summary_tokens)
    price = price_list(load_settings().prices.get("models") or {})
    return found["compressed"], price(order["summarizer"], used)


def compress_batch(
    folder: BatchFolder, order: dict[str, Any], begun: Callable[[], None]
) -> tuple[str, str | None, int]:
    """Makes the merged rows of a batch fit.

    Args:
        folder: The batch's.
        order: {"max_tokens", "tokenizer", "summarizer"}.
        begun: Called once the order has turned out to be usable.

    Returns:
        How it ended, why, and the exit code of the command.

    Raises:
        RlCliError: As compress().
        KeyboardInterrupt: It was stopped at once; what was paid for is kept.
    """
    job = compression_of(folder, order["max_tokens"])
    tokenizer = open_tokenizer(order["tokenizer"])
    writer = writer_of(order["summarizer"], f"compress-{folder.name}")

    async def work(stop: asyncio.Event) -> dict[str, Any]:
        begun()
        return await compress(job, tokenizer, writer, stop)

    try:
        report = asyncio.run(interruptible(work))
    except Interrupted as stopped:
        return "stopped", stopped.message, stopped.exit_code
    if missed := report["failed"] + report["unreadable"] + report["no_row"]:
        trouble = f": {report['trouble']}" if report["trouble"] else ""
        reason = f"{missed} rows stayed as they were or are left out{trouble}"
        return "finished", reason, Refused.exit_code if report["out_of_budget"] else WorkFailed.exit_code
    return "finished", None, 0
