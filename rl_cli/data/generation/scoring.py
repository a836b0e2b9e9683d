"""`--score ENV`: an environment judges each sample in the sample's own sandbox, before that goes."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass

from environments.agent_loop import LoopResult
from environments.base import Environment, Rollout, Task
from environments.policies.base import Policy
from environments.tool_context import ToolContext
from rl_cli.data.batch.items import Item
from rl_cli.data.generation.own_code import own_code


@dataclass(frozen=True)
class Scorer:
    """An environment as the judge of samples.

    Its task is the input row: `data` is the row's metadata, with its messages as `messages` and the last of
    them as `prompt`. It gets copies: what it changes does not change what is kept.
    """

    env: Environment
    judge: Policy | None = None
    """Whom the environment may ask."""

    @classmethod
    def load(cls, name: str, judge: Policy | None = None) -> Scorer:
        """Imports the environment: runs a person's own code in this process.

        Raises:
            BadUsage: There is no such environment, or its file is broken.
        """
        from environments.catalogue import load_environment
        from rl_cli.core.settings import environments_folder

        return cls(load_environment(name, extra_dir=environments_folder()), judge)

    def task(self, item: Item) -> Task:
        asked = {"messages": item.messages, "prompt": item.messages[-1]["content"]}
        return Task(item.key, deepcopy({**asked, **item.metadata}))

    async def setup(self, task: Task, ctx: ToolContext, seconds: float) -> None:
        """Raises what the environment raises, or OwnCodeFailed where it blocks for so long."""
        await own_code(self.env.setup, task, ctx, seconds=seconds)

    async def teardown(self, task: Task, ctx: ToolContext, seconds: float) -> None:
        """As setup()."""
        await own_code(self.env.teardown, task, ctx, seconds=seconds)

    async def score(self, task: Task, result: LoopResult, ctx: ToolContext, seconds: float) -> float:
        """The reward.

        Raises:
            ValueError: It is not finite.
            Exception: Whatever the environment raises; OwnCodeFailed where it blocks for so long.
        """
        rollout = Rollout(task, deepcopy(result))
        reward = await own_code(self.env.reward, task, rollout, ctx, seconds=seconds)
        if not math.isfinite(reward.value):
            raise ValueError(f"{self.env.name} scored {reward.value}, which is no figure")
        return float(reward.value)
