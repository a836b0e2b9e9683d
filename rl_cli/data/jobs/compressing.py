"""Detached compression: the merged rows of a batch made to fit, in a file beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl_cli.core.errors import BadUsage
from rl_cli.core.settings import ensure_home, load_settings
from rl_cli.data.batch.folder import BatchFolder
from rl_cli.data.compression.plan import Limits
from rl_cli.data.compression.summarizers import EXTRACTIVE
from rl_cli.data.compression.tokenizers import open_tokenizer
from rl_cli.data.compressor import Compression, compress, dry_run
from rl_cli.data.generation.stopping import Stopping

if TYPE_CHECKING:
    from environments.policies.base import Meter, Policy

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
    _who(order["summarizer"], folder)
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
    """
    job = compression_of(folder, order["max_tokens"])
    tokenizer = open_tokenizer(order["tokenizer"])
    policy, meter, window = _who(order["summarizer"], folder)

    async def work() -> dict[str, Any] | None:
        stopping, main = Stopping(), asyncio.current_task()
        assert main
        stopping.listen()
        ending = asyncio.create_task(_cancel_once(stopping, main))
        begun()
        try:
            return await compress(job, tokenizer, policy, meter, window, stopping.asked)
        except asyncio.CancelledError:
            return None
        finally:
            ending.cancel()

    report = asyncio.run(work())
    if report is None:
        return "stopped", "it was stopped at once; what was paid for is kept", 130
    if missed := report["failed"] + report["unreadable"] + report["no_row"]:
        trouble = f": {report['trouble']}" if report["trouble"] else ""
        return "finished", f"{missed} rows stayed as they were or are left out{trouble}", 1
    return "finished", None, 0


async def _cancel_once(stopping: Stopping, main: asyncio.Task[Any]) -> None:
    await stopping.now.wait()
    main.cancel()


def _who(name: str, folder: BatchFolder) -> tuple[Policy | None, Meter | None, int]:
    """Who writes summaries, who pays, and the window; no policy for extracts."""
    from rl_cli.agent.models import DEFAULT_WINDOW, OPERATOR, resolve_policy, window_of
    from rl_cli.spending.meter import SessionMeter

    if name == EXTRACTIVE:
        return None, None, DEFAULT_WINDOW
    if name == OPERATOR:
        raise BadUsage(f"{OPERATOR} writes no summaries", f"name a model as provider/name, or {EXTRACTIVE}")
    settings = load_settings()
    policy = resolve_policy(name, None, settings)
    endpoint = getattr(policy, "endpoint", None)
    if endpoint is None:
        return policy, None, DEFAULT_WINDOW
    session = f"compress-{folder.name}"
    meter = SessionMeter.open(ensure_home(), settings, session, endpoint.base_url, on_warning=print)
    return policy, meter, window_of(policy.name, endpoint)
