"""Samples on a Ray cluster: leased to actors one by one, written by nobody but the process that leases them.

A sample whose actor dies is leased again to another one. Nodes of another machine need this package, the
provider's key in their environment, and where a budget is to hold for all of them the same home folder.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from rl_cli.agent.models import resolve_policy
from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.core.settings import home, load_settings
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.items import Item
from rl_cli.data.batch.samples import row_key
from rl_cli.data.generation.outcome import Outcome
from rl_cli.data.generation.progress import Progress
from rl_cli.data.generation.toolsets import Draws
from rl_cli.data.generation.workers import LocalWorkers, session_of
from rl_cli.spending.meter import SessionMeter

CLOSE_SECONDS = 10.0
FLUSH_SECONDS = 1.0
MOST_LEASES = 3
"""A sample that has ended so many actors fails."""


@dataclass
class Slot:
    """One actor, and how many samples it has."""

    actor: Any
    leased: int = 0


class RayWorkers:
    """One actor for each core of the cluster, no more of them than samples in flight.

    Args:
        config: Of the batch. Its `ray_address` is an existing cluster; None starts one on this machine, which
            ends with this process.

    Raises:
        BadUsage: Ray is not installed, or the model, its key or a toolset is missing here.
    """

    hears = False

    def __init__(self, config: BatchConfig) -> None:
        try:
            import ray
        except ModuleNotFoundError:
            raise BadUsage("the executor ray is not installed", "pip install 'rl-flywheel[ray]'") from None
        resolve_policy(str(config.model), config.base_url, load_settings())
        Draws(config)
        self._config = config
        self._ray: Any = ray  # its types know nothing of actors' options
        self._ledger = SessionMeter.open(home(), load_settings(), session_of(config.name))
        self._slots: list[Slot] = []

    def listen(self, progress: Progress) -> None:
        """Nothing is heard from other processes before a sample has ended."""

    def look(self, progress: Progress) -> None:
        progress.allowed = self._config.concurrency
        progress.dollars = self._ledger.spent().dollars

    async def __aenter__(self) -> Self:
        ray = self._ray
        try:
            await asyncio.to_thread(
                ray.init,
                address=self._config.ray_address,
                include_dashboard=False if self._config.ray_address is None else None,
                logging_level=logging.ERROR,
                log_to_driver=False,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            address = self._config.ray_address
            where = f"the cluster at {address} cannot be used" if address else "ray cannot be started"
            raise WorkFailed(f"{where}: {' '.join(str(error).split())[:300]}") from error
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        count = min(cores, self._config.concurrency)
        self._requests = math.ceil(self._config.concurrency / count)
        self._slots = [Slot(self._actor()) for _ in range(count)]
        return self

    async def __aexit__(self, *_: object) -> None:
        closing = [asyncio.ensure_future(_closed(slot.actor)) for slot in self._slots]
        if closing:
            await asyncio.wait(closing, timeout=CLOSE_SECONDS)
        for slot in self._slots:
            self._ray.kill(slot.actor)
        await asyncio.to_thread(self._ray.shutdown)

    async def run(self, item: Item, number: int) -> Outcome:
        """One sample, by the actor that has the fewest."""
        last = ""
        for _ in range(MOST_LEASES):
            slot = min(self._slots, key=lambda each: each.leased)
            actor, slot.leased = slot.actor, slot.leased + 1
            lease = actor.run.remote(item, number)
            try:
                outcome: Outcome = await lease
                return outcome
            except self._ray.exceptions.RayActorError as error:
                last = str(error)
                if slot.actor is actor:  # whoever sees its end first puts another in its place
                    slot.actor = self._actor()
            except asyncio.CancelledError:
                self._ray.cancel(lease)
                raise
            except self._ray.exceptions.RayTaskError as error:  # the actor refused the batch's settings
                cause = error.cause if isinstance(error.cause, Exception) else error
                raise WorkFailed(f"a worker failed: {' '.join(str(cause).split())[:300]}") from error
            finally:
                slot.leased -= 1
        error_line = f"WorkerDied: {' '.join(last.split())[:300]}"
        return Outcome(row_key(item, number), "failed", None, "worker", error_line, MOST_LEASES)

    def _actor(self) -> Any:
        config = self._config.model_dump()
        remote = self._ray.remote(max_restarts=0, max_concurrency=self._requests + 1, num_cpus=1)(Worker)
        return remote.remote(config, self._requests, str(home()))


async def _closed(actor: Any) -> None:
    """Also where the actor is gone."""
    with suppress(Exception):
        await actor.close.remote()


class Worker:
    """What runs in an actor."""

    def __init__(self, config: dict[str, Any], requests: int, home_folder: str) -> None:
        os.environ["RL_CLI_HOME"] = home_folder
        self._config, self._requests = BatchConfig.model_validate(config), requests
        self._opening: asyncio.Task[LocalWorkers] | None = None
        self._flushed_at = time.monotonic()

    async def run(self, item: Item, number: int) -> Outcome:
        """One sample. What is spent is written about once a second."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(LocalWorkers(self._config, self._requests).__aenter__())
        workers = await asyncio.shield(self._opening)
        outcome = await workers.run(item, number)
        if time.monotonic() - self._flushed_at > FLUSH_SECONDS:
            self._flushed_at = time.monotonic()
            await asyncio.to_thread(workers.meter.flush)
        return outcome

    async def close(self) -> None:
        """Writes what was spent."""
        if self._opening is not None:
            await (await self._opening).__aexit__()
