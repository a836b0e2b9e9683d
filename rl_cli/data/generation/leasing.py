"""The heart of the batch runner: begins samples as slots become free, writes them as they end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from rl_cli.core.errors import RlCliError
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.items import Item
from rl_cli.data.batch.ledger import Ledger
from rl_cli.data.batch.samples import row_key, samples_to_ask
from rl_cli.data.generation.evaluation import Evaluations
from rl_cli.data.generation.item_log import about
from rl_cli.data.generation.outcome import Outcome, entry_of
from rl_cli.data.generation.own_code import is_being_cancelled
from rl_cli.data.generation.progress import Progress
from rl_cli.data.generation.reading import read_ahead
from rl_cli.data.generation.stopping import Stopping
from rl_cli.data.generation.workers import Workers

SILENCE_SECONDS = 6.0
"""After Ctrl-C: when nothing has been heard from any conversation for so long, none is waited for."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ending:
    """Why a start of a batch ended before its input did."""

    state: Literal["stopped", "failed"]
    reason: str
    exit_code: int


class Leasing:
    """One start of a batch.

    Samples that the machinery spoilt are failures only once others show that the machinery works: until then
    they are held, and dropped if it never does, so that the next start asks them again.
    """

    def __init__(
        self,
        config: BatchConfig,
        ledger: Ledger,
        workers: Workers,
        progress: Progress,
        stopping: Stopping,
        evaluations: Evaluations | None,
    ) -> None:
        self._config, self._ledger, self._workers = config, ledger, workers
        self._progress, self._stopping, self._evaluations = progress, stopping, evaluations
        self._slots = asyncio.Semaphore(config.concurrency)
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: list[tuple[float, Outcome]] = []
        """With the time of each, on the clock of time.monotonic()."""
        self._streak = 0
        """Spoilt samples since the last one that went well."""
        self._works = False
        self.ending: Ending | None = None

    async def run(self, items: Iterator[Item]) -> Ending | None:
        """Everything that is left to ask; None when there is no more."""
        watch = asyncio.create_task(self._watch_stop())
        try:
            await self._begin_all(items)
            await self._drain()
        finally:
            watch.cancel()
            await self._cancel()
        await self._settle_rest()
        if self.ending is None and self._stopping.asked.is_set():
            self.ending = Ending("stopped", "stopped by a person", 130)
        return self.ending

    async def _begin_all(self, items: Iterator[Item]) -> None:
        try:
            async for item in read_ahead(items):
                if self.ending or self._stopping.asked.is_set():
                    return
                self._progress.read += 1
                await self._begin(item)
        except RlCliError as error:  # the input is damaged here; what is in flight is paid for
            self._end(Ending("failed", str(error), error.exit_code))
            return
        progress = self._progress
        progress.items = progress.read
        progress.expected = progress.ended + progress.in_flight + len(self._held)

    async def _begin(self, item: Item) -> None:
        """Returns once all samples of an item have begun."""
        numbers = samples_to_ask(self._config, item, self._ledger.index.of(item.key))
        if not numbers:
            return
        if self._config.target is not None:
            await self._start(self._until_target(item))
            return
        for number in numbers:
            await self._start(self._sample(item, number))

    async def _start(self, work: Coroutine[Any, Any, None]) -> None:
        await self._slots.acquire()
        if self.ending or self._stopping.asked.is_set():
            self._slots.release()
            work.close()
            return
        task = asyncio.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        self._progress.in_flight += 1
        try:
            await work
        except RlCliError as error:  # the ledger, or the workers, cannot go on
            self._end(Ending("failed", str(error), error.exit_code))
        except (Exception, asyncio.CancelledError) as error:  # a bug; what it left out must not pass for done
            if isinstance(error, asyncio.CancelledError) and is_being_cancelled():
                raise
            log.exception("unexpected")
            self._end(Ending("failed", f"unexpected {type(error).__name__}: {error}", 1))
        finally:
            self._progress.in_flight -= 1
            self._slots.release()

    async def _until_target(self, item: Item) -> None:
        """Samples of an item, one after another, until enough of them are good."""
        while numbers := samples_to_ask(self._config, item, self._ledger.index.of(item.key)):
            if self.ending or self._stopping.asked.is_set():
                return
            await self._sample(item, numbers[0])
            if not self._ledger.index.of(item.key).has(numbers[0]):
                return  # held, or open

    async def _sample(self, item: Item, number: int) -> None:
        began = time.monotonic()
        if self._ledger.index.is_tried_again(row_key(item, number)):
            self._progress.failed["earlier"] -= 1
        with about(item):
            outcome = await self._workers.run(item, number)
            if outcome.error:
                log.warning("sample %s: %s: %s", outcome.key, outcome.reason, outcome.error)
        self._progress.heard()
        if outcome.state == "done" or outcome.error:
            self._progress.failing(outcome.error or "")
        if outcome.state == "open":
            await self._keep(outcome)
            self._give_up(outcome)
        elif outcome.is_spoilt:
            self._held.append((time.monotonic(), outcome))
            self._streak += 1
            if self._streak >= self._config.give_up_after:
                self._give_up(outcome)
        else:
            self._works, self._streak = True, 0
            await self._write(outcome)
            await self._settle_held(began)

    def _give_up(self, outcome: Outcome) -> None:
        if outcome.reason == "budget":
            self._end(Ending("stopped", outcome.error or "the budget is used up", 3))
            return
        if outcome.state == "open":
            what = f"nothing was answered {self._config.give_up_after} times in a row, the last time with"
        else:
            what = f"{self._streak} samples in a row failed, the last one with"
        self._end(Ending("failed", f"{what}: {outcome.error}", 1))

    async def _settle_held(self, began: float) -> None:
        """What was spoilt counts as failed where a sample that was begun later went well."""
        held = self._held
        self._held = [(at, outcome) for at, outcome in held if at >= began]
        for at, outcome in held:
            if at < began:
                await self._write(outcome)

    async def _settle_rest(self) -> None:
        """At the end, unless it all failed in the end."""
        if self._held and not self._works:
            self._end(Ending("failed", f"nothing could be made: {self._held[-1][1].error}", 1))
        if self.ending is None or self.ending.state != "failed":
            await self._settle_held(float("inf"))
        for _, outcome in self._held:
            await self._keep(replace(outcome, state="open"))

    async def _keep(self, outcome: Outcome) -> None:
        """What was paid for of a sample that will be asked again stays, and counts in no other way."""
        if outcome.row is not None:
            await self._ledger.append(entry_of(outcome, self._config.redact))

    async def _write(self, outcome: Outcome) -> None:
        await self._ledger.append(entry_of(outcome, self._config.redact))
        self._progress.add(outcome)
        if self._ledger.full:
            self._end(Ending("failed", "the disk is full: free some space, and resume", 1))
        if self._evaluations and self._evaluations.is_due(self._progress.ended) and not self.ending:
            task = asyncio.create_task(self._evaluate())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _evaluate(self) -> None:
        assert self._evaluations
        try:
            await self._evaluations.run(self._workers, self._slots, self._progress.ended)
        except Exception as error:  # the batch is worth more than its curve
            log.warning("the evaluation failed: %s", error, exc_info=True)

    def _end(self, ending: Ending) -> None:
        """Nothing new is begun from here on; the first reason counts."""
        self.ending = self.ending or ending

    async def _drain(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _watch_stop(self) -> None:
        """Ends what is in flight at the second Ctrl-C, or if after the first nothing is heard any more."""
        await self._stopping.asked.wait()
        asked = time.monotonic()
        while not self._stopping.now.is_set():
            heard = max(asked, self._progress.heard_at)
            if self._workers.hears and time.monotonic() - heard > SILENCE_SECONDS:
                break
            try:
                await asyncio.wait_for(self._stopping.now.wait(), 0.25)
            except TimeoutError:
                continue
        await self._cancel()

    async def _cancel(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
