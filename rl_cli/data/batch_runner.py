"""The batch runner: a start of a batch, or the next one after whatever ended the last."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rl_cli.core.errors import RlCliError, WorkFailed
from rl_cli.core.files import explain_os_error
from rl_cli.core.processes import ProcessIdentity
from rl_cli.data.batch.asked import asked_items
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.folder import BatchFolder, batch_folder
from rl_cli.data.batch.items import Item, items
from rl_cli.data.batch.ledger import Ledger
from rl_cli.data.batch.samples import accepts
from rl_cli.data.generation.evaluation import Evaluations
from rl_cli.data.generation.item_log import logging_to
from rl_cli.data.generation.leasing import Ending, Leasing
from rl_cli.data.generation.progress import Progress, expected_items
from rl_cli.data.generation.sandboxes import check_sandbox
from rl_cli.data.generation.stopping import Stopping
from rl_cli.data.generation.toolsets import check_image
from rl_cli.data.generation.workers import LocalWorkers, Workers

STATE_SECONDS = 1.0
"""How often state.json and whoever watches are told."""
ENDS = "what is in flight comes to its end; Ctrl-C again stops it at once"

OnProgress = Callable[[Progress], None]
"""Told about once a second."""


@dataclass(frozen=True)
class Ended:
    """How a start of a batch ended."""

    state: str
    """finished, stopped or failed."""
    reason: str | None
    exit_code: int
    progress: Progress


def run_batch(
    config: BatchConfig,
    on_progress: OnProgress = lambda progress: None,
    on_bad_row: Callable[[str, str], None] = lambda where, why: None,
    stopping: Stopping | None = None,
    retry_failed: bool = False,
) -> Ended:
    """Asks all that the batch still lacks, until there is no more or it is stopped. Merges nothing.

    Args:
        config: With its model.
        on_progress: Told how far it is.
        on_bad_row: Told place and reason of each input row that cannot be used.
        stopping: Whether it should stop; None: signals of this process say so.
        retry_failed: Ask the samples that have failed before once more.

    Raises:
        BadUsage: The settings differ from those that the batch was begun with, something that they name is
            missing, no row of the input can be used, or another process makes this batch.
        RlCliError: The folder or the input cannot be read or written.
    """
    check_start(config)
    workers = _workers(config)
    progress = Progress()

    def bad_row(where: str, why: str) -> None:
        progress.bad_rows += 1
        on_bad_row(where, why)

    folder = batch_folder(config.name)
    with folder.locked():
        folder.begin(config)
        evaluations = Evaluations(config, folder) if config.eval_every else None
        wanted = asked_items(folder, config, config.max_samples, bad_row)
        start = _Start(config, folder, workers, progress, stopping, on_progress, evaluations, retry_failed)
        with logging_to(folder.path / "batch.log"):
            return asyncio.run(start.run(wanted))


def check_start(config: BatchConfig) -> None:
    """Raises BadUsage where no row of the input can be used, or its sandbox cannot be had; asks nothing."""
    check_sandbox(config)
    check_image(next(items(config.input, lambda where, why: None)), config)


def _workers(config: BatchConfig) -> Workers:
    if config.executor == "ray":
        from rl_cli.data.generation.ray_workers import RayWorkers

        return RayWorkers(config)
    return LocalWorkers(config, config.concurrency)


class _Start:
    """One start, under the batch's lock."""

    def __init__(
        self,
        config: BatchConfig,
        folder: BatchFolder,
        workers: Workers,
        progress: Progress,
        stopping: Stopping | None,
        on_progress: OnProgress,
        evaluations: Evaluations | None,
        retry_failed: bool,
    ) -> None:
        self._config, self._folder, self._workers, self._progress = config, folder, workers, progress
        self._stopping, self._on_progress, self._evaluations = stopping, on_progress, evaluations
        self._retry_failed = retry_failed
        self._state: dict[str, Any] = {
            "state": "running",
            "reason": None,
            "process": ProcessIdentity.current().to_dict(),
            "started": time.time(),
            "ended": None,
        }

    async def run(self, wanted: Iterator[Item]) -> Ended:
        config, progress = self._config, self._progress
        stopping = self._stopping or Stopping()
        stopping.on_first = self._say_that_it_ends
        if self._stopping is None:
            stopping.listen()
        ledger = Ledger(self._folder.ledger, accepts(config), config.concurrency)
        progress.done, failed = ledger.index.counts()
        progress.failed["earlier"] = failed
        if self._retry_failed:
            ledger.index.forget_failed()
        progress.items = await asyncio.to_thread(expected_items, config)
        progress.expected = None if progress.items is None else progress.items * config.most_samples
        progress.note = ledger.repaired or ""
        try:
            await self._tell()
            telling = asyncio.create_task(self._keep_telling())
            try:
                async with self._workers:
                    self._workers.listen(progress)
                    gc.freeze()  # what is loaded by now stays: the collector need not look at it
                    leasing = Leasing(config, ledger, self._workers, progress, stopping, self._evaluations)
                    ending = await leasing.run(wanted)
            finally:
                telling.cancel()
            ledger.close()
            progress.failed["earlier"] += ledger.index.counts()[1] - progress.failed.total()
            ended = self._ended(ending)
            progress.note = "" if progress.note == ENDS else progress.note
        except OSError as error:
            raise self._broken(explain_os_error(error, self._folder.path)) from error
        except BaseException as error:
            raise self._broken(error) from None
        finally:
            with suppress(RlCliError):
                ledger.close()
        self._state |= {"state": ended.state, "reason": ended.reason, "ended": time.time()}
        await self._tell()
        return ended

    def _ended(self, ending: Ending | None) -> Ended:
        progress = self._progress
        if ending is not None:
            return Ended(ending.state, ending.reason, ending.exit_code, progress)
        progress.expected = progress.ended
        if failed := progress.failed.total():
            samples = "samples" if failed > 1 else "sample"
            return Ended("finished", f"{failed} {samples} failed", WorkFailed.exit_code, progress)
        return Ended("finished", None, 0, progress)

    def _broken(self, error: BaseException) -> BaseException:
        """The same error, once state.json tells of it as far as it can be written."""
        self._progress.in_flight = 0
        told = str(error) or type(error).__name__
        self._state |= {"state": "failed", "reason": told, "ended": time.time()}
        with suppress(OSError, RlCliError):
            self._write_state()
        return error

    def _say_that_it_ends(self) -> None:
        self._progress.note = ENDS
        self._show()

    async def _keep_telling(self) -> None:
        while True:
            await asyncio.sleep(STATE_SECONDS)
            await self._tell()

    async def _tell(self) -> None:
        await asyncio.to_thread(self._write_state)
        self._show()

    def _show(self) -> None:
        with suppress(OSError):  # the terminal may be gone, which ends nothing
            self._on_progress(self._progress)

    def _write_state(self) -> None:
        progress = self._progress
        self._workers.look(progress)
        state = {
            **self._state,
            "items": progress.items,
            "expected": progress.expected,
            "max_samples": self._config.max_samples,
            "done": progress.done,
            "failed": progress.failed.total(),
            "in_flight": progress.in_flight,
            "spend": progress.dollars,
            "trouble": progress.trouble or None,
        }
        try:
            self._folder.write_state(state)
        except OSError as error:  # the ledger decides; a full disk ends the batch there
            progress.note = str(explain_os_error(error))
