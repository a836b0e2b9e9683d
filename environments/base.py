"""What every environment is: tasks, prompts, rewards; groups of rollouts, and how they are scored."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from rl_cli.core.messages import Message

if TYPE_CHECKING:
    from environments.agent_loop import LoopResult
    from environments.tool_context import ToolContext
    from tools.sandboxes.base import SandboxConfig

Split = Literal["train", "validation", "test"]


@dataclass(frozen=True)
class Task:
    """One dataset row as the environment poses it."""

    id: str
    """Unique and stable: the same id is the same task in every process."""
    data: dict[str, Any]
    """What prompt() and reward() need; JSON-serialisable."""


@dataclass(frozen=True)
class Reward:
    """The verdict on one rollout. `value` is None only where nothing could be judged."""

    value: float
    parts: dict[str, float] = field(default_factory=dict)
    """Named figures for the metrics, e.g. {"correct": 1.0, "format": 0.0}."""
    per_turn: tuple[float, ...] | None = None


@dataclass(frozen=True)
class RolloutError:
    """A failure of the infrastructure. It is never a reward of 0."""

    kind: str
    """Counted by this: sandbox, judge, network, policy, reward, timeout, ..."""
    message: str


@dataclass
class Rollout:
    """One attempt at a task."""

    task: Task
    result: LoopResult | None
    """Messages, stop reason, usage, calls, tokens; None where the loop itself could not run."""
    reward: Reward | None = None
    """None if and only if `error` is set."""
    error: RolloutError | None = None

    @property
    def messages(self) -> list[Message]:
        return self.result.messages if self.result else []


@dataclass
class ScoredGroup:
    """The rollouts of one task, scored against each other."""

    task: Task
    rollouts: list[Rollout]
    """Always as many as were asked for; errored ones keep their place."""
    advantages: list[float]
    """One per rollout; 0.0 for an errored one."""
    toolsets: tuple[str, ...]
    has_signal: bool
    """False where all valid rewards are (nearly) equal or fewer than two rollouts are valid."""

    def errors_by_kind(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for rollout in self.rollouts:
            if rollout.error:
                counts[rollout.error.kind] = counts.get(rollout.error.kind, 0) + 1
        return counts


NEAR_EQUAL = 1e-6
"""Rewards of a group within this of each other carry no signal."""


def advantages(rewards: list[float | None], scale: bool = True) -> tuple[list[float], bool]:
    """Group-relative advantages (Shao et al. 2024, DeepSeekMath, eq. 4.1.1: GRPO).

    Args:
        rewards: One per rollout of the group; None for an errored rollout.
        scale: Divide by the (sample) standard deviation, as GRPO does.

    Returns:
        One advantage per rollout (0.0 for None), and whether the group carries signal. Bounded by
        sqrt(len(rewards)): nearly equal rewards are no signal rather than a division by almost zero.
    """
    valid = [r for r in rewards if r is not None]
    if len(valid) < 2 or max(valid) - min(valid) <= NEAR_EQUAL * max(1.0, abs(max(valid)), abs(min(valid))):
        return [0.0] * len(rewards), False
    mean = math.fsum(valid) / len(valid)
    spread = math.sqrt(math.fsum((r - mean) ** 2 for r in valid) / (len(valid) - 1)) if scale else 1.0
    return [0.0 if r is None else (r - mean) / spread for r in rewards], True


class EnvironmentConfig(BaseModel):
    """Base of an environment's own settings: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


COUNTED_TASKS = 100_000
"""size() counts no further; an endless environment overrides it."""


class Environment:
    """Subclass this. The class attributes must be literals: listing reads them without importing the file."""

    name: ClassVar[str]
    description: ClassVar[str]
    """One line."""
    profiles: ClassVar[tuple[str, ...]] = ("single-gpu",)
    """The training profiles that can learn it."""
    stand_in: ClassVar[str | None] = None
    """The environment to offer where none of `profiles` can run here."""
    Config: ClassVar[type[EnvironmentConfig]] = EnvironmentConfig

    def __init__(self, config: EnvironmentConfig) -> None:
        self.config = config

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """Finite or endless, deterministic in (split, seed); train, validation and test are disjoint."""
        raise NotImplementedError

    def size(self, split: Split) -> int | None:
        """Number of tasks of a split; None where it is endless, or longer than COUNTED_TASKS."""
        counted = sum(1 for _ in islice(self.tasks(split, seed=0), COUNTED_TASKS + 1))
        return counted if counted <= COUNTED_TASKS else None

    def prompt(self, task: Task) -> list[Message]:
        raise NotImplementedError

    def toolsets(self, rng: random.Random) -> tuple[str, ...]:
        """Sorted names of toolsets, drawn once per group and kept in the group."""
        return ()

    def sandbox(self, task: Task) -> SandboxConfig | None:
        """Where the task's commands run; None: in the default kind, without network.

        A task that names an image has its sandbox started before anything is asked of the policy; any other
        when a tool first needs it.
        """
        return None

    async def setup(self, task: Task, ctx: ToolContext) -> None:
        """Prepares the rollout's sandbox. What it raises makes an errored rollout."""

    async def teardown(self, task: Task, ctx: ToolContext) -> None:
        """Always called after setup() began."""

    async def reward(self, task: Task, rollout: Rollout, ctx: ToolContext) -> Reward:
        """Judges a finished rollout. What it raises makes an errored rollout of kind 'reward'."""
        raise NotImplementedError

    def warm_start(self, seed: int, count: int) -> list[list[WarmStartSegment]] | None:
        """Worked solutions for supervised fine-tuning before GRPO, or None if the environment has none.

        Returns:
            `count` rows, each a list of segments in order.
        """
        return None


@dataclass(frozen=True)
class WarmStartSegment:
    """A piece of a worked solution."""

    text: str
    trained: bool
    """True: the model learns to write it. False: the prompt, or a tool's result."""
