"""Makes conversations fit a number of tokens: files of rows in, a file of rows out, in the same order.

Rows stream through, so memory does not grow with the input. Nothing is lost when it is killed: the same call
goes on where the last one was, and no summary is paid for twice (`compression.journal`).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any

from environments.policies.base import BudgetExhausted, SharesConnections
from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.data.compression.counting import Counting
from rl_cli.data.compression.extractive import EXTRACTIVE
from rl_cli.data.compression.job import Compression, check_room, checked
from rl_cli.data.compression.journal import Journal, folder_of, opened
from rl_cli.data.compression.paid import PaidSummaries
from rl_cli.data.compression.report import RowReport, Status, Totals
from rl_cli.data.compression.row import Ended, Tools, compress_row
from rl_cli.data.compression.rows_in import Line, Place, lines
from rl_cli.data.compression.summarizers import Extractive, PolicySummarizer, Stopped, Summarizer
from rl_cli.data.compression.tokenizers import Tokenizer
from rl_cli.data.compression.writer import Writer

WINDOW_BYTES, WINDOW_ROWS = 16_000_000, 1_000
"""Of the rows that are worked on at one time."""
COMMIT_SECONDS, COMMIT_BYTES = 1.0, 4_000_000
"""When rows are brought to the disk."""


class Interrupted(WorkFailed):
    """It was stopped, and can be gone on with."""

    exit_code = 130


async def compress(
    job: Compression,
    tokenizer: Tokenizer,
    writer: Writer | None = None,
    stop: asyncio.Event | None = None,
    on_progress: Callable[[Totals], None] = lambda totals: None,
) -> dict[str, Any]:
    """Writes the output; returns what became of the rows.

    Args:
        job: What is to be done. The same again goes on where it was broken off; once that is finished, it
            begins anew with the summaries that were paid for, and asks for those that failed.
        tokenizer: What counts.
        writer: Who writes summaries; None: extracts.
        stop: Set, it ends the work after the requests that are under way.
        on_progress: Is told every second or so of all rows so far.

    Raises:
        BadUsage: An input or the output cannot be taken.
        Interrupted: It was stopped, and can be gone on with.
        OSError: A file cannot be read or written; it can be gone on with.
    """
    known = checked(job)
    for target in filter(None, (job.output, job.split_off)):
        if target.exists() and any(target.samefile(path) for path in job.inputs):
            raise BadUsage(f"{target} is an input", "name another output")
    stop = stop or asyncio.Event()
    who = writer.policy.name if writer else EXTRACTIVE
    what = {**job.settings, "inputs": known, "tokenizer": tokenizer.name, "summarizer": who}
    async with AsyncExitStack() as stack:
        counting = await stack.enter_async_context(Counting(tokenizer))
        await check_room(job.limits, counting)
        journal = stack.enter_context(opened(Journal(job.output, job.split_off, what)))
        summarizer: Summarizer = Extractive()
        if writer:
            paid = PaidSummaries(journal.folder / "summaries.jsonl")
            stack.callback(paid.close)
            if isinstance(writer.policy, SharesConnections):
                await stack.enter_async_context(writer.policy.sharing())
            summarizer = PolicySummarizer(writer, paid, job.concurrency, job.summary_seconds, stop)
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
            raise Interrupted(kept, "the same command goes on from there")
        journal.finish()
        return await journal.tell("finished", facts)


async def dry_run(job: Compression, tokenizer: Tokenizer) -> dict[str, Any]:
    """What `compress` would do, at the most that rows may take; asks for no summary and writes nothing."""
    checked(job)
    totals = Totals()
    async with Counting(tokenizer) as counting:
        await check_room(job.limits, counting)
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
    if not job.draws(line.place):
        return Ended(RowReport(line.place.file, line.place.line, Status.NOT_SAMPLED), None)
    return await compress_row(line, tools)


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
