"""Makes conversations fit a number of tokens: files of rows in, a file of rows out, in the same order.

Rows stream through, so memory does not grow with the input. Nothing is lost when it is killed: the same call
goes on where the last one was, and no summary is paid for twice (`compression.journal`).
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from environments.policies.base import BudgetExhausted, Meter, Policy, SharesConnections
from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.data.compression.counting import Counting
from rl_cli.data.compression.journal import Journal, folder_of, opened
from rl_cli.data.compression.paid import PaidSummaries
from rl_cli.data.compression.plan import Limits
from rl_cli.data.compression.report import RowReport, Status, Totals
from rl_cli.data.compression.row import Ended, Tools, compress_row
from rl_cli.data.compression.rows_in import Line, Place, check_inputs, lines
from rl_cli.data.compression.summarizers import EXTRACTIVE, Extractive, PolicySummarizer, Stopped, Summarizer
from rl_cli.data.compression.tokenizers import Tokenizer

WINDOW_BYTES, WINDOW_ROWS = 16_000_000, 1_000
"""Of the rows that are worked on at one time."""
COMMIT_SECONDS, COMMIT_BYTES = 1.0, 4_000_000
"""When rows are brought to the disk."""
LEAST_TOKENS = 200


@dataclass(frozen=True)
class Compression:
    """What is compressed, and how."""

    inputs: tuple[Path, ...]
    output: Path
    """A dry run does not look at it."""
    limits: Limits = field(default_factory=Limits)
    concurrency: int = 50
    """Requests at one time, at most."""
    summary_seconds: float = 300.0
    """That a summary may take."""
    over_limit: Literal["keep", "split"] = "keep"
    """Rows that stay over the limit: kept among the others, or in a file of their own."""
    sample_percent: float = 100.0
    """Only so many of a hundred rows are taken, drawn by `seed`."""
    seed: int = 0


async def compress(
    job: Compression,
    tokenizer: Tokenizer,
    policy: Policy | None = None,
    meter: Meter | None = None,
    window: int = 32_768,
    stop: asyncio.Event | None = None,
    on_progress: Callable[[Totals], None] = lambda totals: None,
) -> dict[str, Any]:
    """Writes the output; returns what became of the rows.

    Args:
        job: What is to be done. The same again goes on where it was broken off; once that is finished, it
            begins anew with the summaries that were paid for, and asks for those that failed.
        tokenizer: What counts.
        policy: Who writes summaries; None: extracts.
        meter: Who pays for its requests; None: they cost nothing.
        window: Of the policy, in tokens.
        stop: Set, it ends the work after the requests that are under way.
        on_progress: Is told every second or so of all rows so far.

    Raises:
        BadUsage: An input or the output cannot be taken.
        WorkFailed: It was stopped, and can be gone on with.
        OSError: A file cannot be read or written; it can be gone on with.
    """
    known = _checked(job)
    if any(job.output.exists() and job.output.samefile(path) for path in job.inputs):
        raise BadUsage(f"{job.output} is an input", "name another output")
    stop = stop or asyncio.Event()
    who = policy.name if policy else EXTRACTIVE
    what = {**_settings(job), "inputs": known, "tokenizer": tokenizer.name, "summarizer": who}
    async with AsyncExitStack() as stack:
        journal = stack.enter_context(opened(Journal(job.output, job.over_limit == "split", what)))
        counting = await stack.enter_async_context(Counting(tokenizer))
        summarizer: Summarizer = Extractive()
        if policy is not None:
            paid = PaidSummaries(journal.folder / "summaries.jsonl")
            stack.callback(paid.close)
            if isinstance(policy, SharesConnections):
                await stack.enter_async_context(policy.sharing())
            summarizer = PolicySummarizer(
                policy, meter, paid, job.concurrency, job.summary_seconds, window, stop
            )
        facts = _facts(job, journal, tokenizer, summarizer)
        began = time.monotonic()
        await journal.tell("running", facts)
        tools, stopped = Tools(job.limits, counting, summarizer), False
        try:
            await _write(job, tools, journal, stop, on_progress, facts)
        except Stopped:
            stopped = True
        await journal.commit()
        facts |= {
            "seconds": round(time.monotonic() - began, 1),
            "trouble": str(summarizer.trouble) if summarizer.trouble else None,
            "out_of_budget": isinstance(summarizer.trouble, BudgetExhausted),
        }
        if stopped:
            await journal.tell("stopped", facts)
            kept = f"stopped after {journal.totals.rows:,} rows, which are kept"
            raise WorkFailed(kept, "the same command goes on from there")
        journal.finish()
        return await journal.tell("finished", facts)


async def dry_run(job: Compression, tokenizer: Tokenizer) -> dict[str, Any]:
    """What `compress` would do, at the most that rows may take; asks for no summary and writes nothing."""
    _checked(job)
    totals = Totals()
    async with Counting(tokenizer) as counting:
        tools = Tools(job.limits, counting, None)
        async with aclosing(_ended(job, tools, Place(), asyncio.Event())) as rows:
            async for _, row in rows:
                totals.add(row.report)
    return {**totals.as_dict(), "tokenizer": tokenizer.name, "estimated": tokenizer.is_estimate}


async def _write(
    job: Compression,
    tools: Tools,
    journal: Journal,
    stop: asyncio.Event,
    on_progress: Callable[[Totals], None],
    facts: dict[str, Any],
) -> None:
    committed = time.monotonic()
    async with aclosing(_ended(job, tools, journal.place, stop)) as rows:
        async for line, row in rows:
            journal.add(row.report, line.place, row.text)
            late = time.monotonic() - committed > COMMIT_SECONDS
            if late or journal.held > COMMIT_BYTES:
                await journal.commit()
            if late:
                await journal.tell("running", facts)
                on_progress(journal.totals)
                committed = time.monotonic()


async def _ended(
    job: Compression, tools: Tools, after: Place, stop: asyncio.Event
) -> AsyncGenerator[tuple[Line, Ended]]:
    """The rows behind a place, in their order, as they are done.

    Raises:
        Stopped: After those that were under way when it was to stop, if there are more.
    """
    under_way: deque[tuple[Line, asyncio.Task[Ended]]] = deque()
    held, more = 0, False
    try:
        for line in lines(job.inputs, after):
            if stop.is_set():
                more = True
                break
            while under_way and (
                held + len(line.text) > WINDOW_BYTES
                or len(under_way) >= WINDOW_ROWS
                or under_way[0][1].done()
            ):
                first, task = under_way[0]
                row = await task
                under_way.popleft()
                held -= len(first.text)
                yield first, row
            held += len(line.text)
            under_way.append((line, asyncio.create_task(_one(job, line, tools))))
            await asyncio.sleep(0)  # the rows under way get on
        while under_way:
            first, task = under_way[0]
            row = await task
            under_way.popleft()
            yield first, row
        if more:
            raise Stopped
    except Stopped:  # answers that are on their way are paid for
        await asyncio.gather(*(task for _, task in under_way), return_exceptions=True)
        raise
    finally:
        for _, task in under_way:
            task.cancel()
        await asyncio.gather(*(task for _, task in under_way), return_exceptions=True)


async def _one(job: Compression, line: Line, tools: Tools) -> Ended:
    if not _drawn(job, line.place):
        return Ended(RowReport(line.place.file, line.place.line, Status.NOT_SAMPLED), None)
    return await compress_row(line, tools)


def _drawn(job: Compression, place: Place) -> bool:
    """Whether a row is among those that are taken: by its place and the seed alone."""
    if job.sample_percent >= 100:
        return True
    digest = hashlib.sha256(f"{job.seed}/{place.file}/{place.line}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64 * 100 < job.sample_percent


def _checked(job: Compression) -> list[dict[str, Any]]:
    """What the inputs are known by. Raises BadUsage."""
    limits = job.limits
    if limits.max_tokens < LEAST_TOKENS:
        raise BadUsage(f"no conversation fits {limits.max_tokens} tokens", f"at least {LEAST_TOKENS}")
    if limits.summary_tokens < 1 or limits.keep_last < 0 or job.concurrency < 1 or job.summary_seconds <= 0:
        raise BadUsage("a summary's tokens, its seconds and the requests at one time are more than 0")
    if not 0 < job.sample_percent <= 100:
        raise BadUsage(f"{job.sample_percent:g} % of the rows cannot be taken", "more than 0, at most 100")
    known = check_inputs(job.inputs)
    if not any(file["size"] for file in known):
        raise BadUsage(f"{', '.join(map(str, job.inputs))}: no rows")
    return known


def _settings(job: Compression) -> dict[str, Any]:
    """What makes another output."""
    same = {"inputs", "output", "concurrency", "summary_seconds"}
    return {name: value for name, value in asdict(job).items() if name not in same}


def _facts(
    job: Compression, journal: Journal, tokenizer: Tokenizer, summarizer: Summarizer
) -> dict[str, Any]:
    return {
        "output": str(job.output),
        "split_off": str(journal.over_limit) if journal.over_limit else None,
        "details": str(folder_of(job.output) / "rows.jsonl"),
        "max_tokens": job.limits.max_tokens,
        "tokenizer": tokenizer.name,
        "estimated": tokenizer.is_estimate,
        "summarizer": summarizer.name,
        "resumed": journal.resumed,
    }
