"""Who runs the samples of a batch: this process, here; `ray_workers` has the other executor."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Protocol, Self

from environments.policies.base import SharesConnections
from rl_cli.agent.models import endpoint_of, resolve_policy
from rl_cli.core.own_process import drop_keys
from rl_cli.core.settings import home, load_settings
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.items import Item
from rl_cli.data.generation.limiter import RequestLimit
from rl_cli.data.generation.outcome import Outcome
from rl_cli.data.generation.progress import Progress
from rl_cli.data.generation.provider import BatchPolicy, ProviderHealth
from rl_cli.data.generation.sampler import take_sample
from rl_cli.data.generation.scoring import Scorer
from rl_cli.data.generation.shared import Shared
from rl_cli.spending.batch_meter import BatchMeter

WITHOUT_ADDRESS = ("builtin", "scripted")
"""Providers that answer in this process."""
SEARCH_KEYS = ("TAVILY_API_KEY", "BRAVE_API_KEY")
"""What the tool web_search needs."""


class Workers(Protocol):
    """An async context manager that runs samples, any number at a time."""

    hears: bool
    """Whether it tells a progress when something happens in a conversation."""

    async def run(self, item: Item, number: int) -> Outcome:
        """One sample, to its end; when it is cancelled, what it started is ended."""
        ...

    def listen(self, progress: Progress) -> None:
        """Tells it from now on when something happens in a conversation."""
        ...

    def look(self, progress: Progress) -> None:
        """Puts into it what is spent, and how many requests may go out at once."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...


class LocalWorkers:
    """Samples in this event loop. With an environment that scores, no keys stay in os.environ.

    Args:
        config: Of the batch; names its model.
        requests: Most requests at once.

    Raises:
        BadUsage: The model, the key, a toolset or the environment that scores is missing.
    """

    hears = True

    def __init__(self, config: BatchConfig, requests: int) -> None:
        settings, model = load_settings(), str(config.model)
        self._policy = resolve_policy(model, config.base_url, settings)
        remote = model.partition("/")[0] not in WITHOUT_ADDRESS
        address = endpoint_of(model, config.base_url, settings).base_url if remote else None
        self.meter = BatchMeter.open(home(), settings, session_of(config.name), address)
        self.limit = RequestLimit(requests)
        health = ProviderHealth(config.give_up_after)
        if config.score:  # a person's own code, which is not given the keys
            drop_keys(keep=SEARCH_KEYS)
        scorer = Scorer.load(config.score, self._policy) if config.score else None
        self._shared = Shared(config, BatchPolicy(self._policy, self.limit, health), self.meter, scorer)
        self._stack = AsyncExitStack()

    async def run(self, item: Item, number: int) -> Outcome:
        return await take_sample(self._shared, item, number)

    def listen(self, progress: Progress) -> None:
        self._shared.policy.on_heard = progress.heard
        self._shared.policy.on_trouble = progress.failing

    def look(self, progress: Progress) -> None:
        progress.allowed = self.limit.allowed
        self.meter.flush()
        progress.dollars = self.meter.spent().dollars

    async def __aenter__(self) -> Self:
        if isinstance(self._policy, SharesConnections):
            await self._stack.enter_async_context(self._policy.sharing())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        await asyncio.to_thread(self.meter.close)


def session_of(name: str) -> str:
    """Under which session a batch's spending is written."""
    return f"batch-{name}"
