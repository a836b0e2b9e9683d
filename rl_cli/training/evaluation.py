"""Evaluation and groups of rollouts for code that is not asynchronous, on one event loop per worker."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

from environments.agent_loop import Limits
from environments.base import Environment, ScoredGroup, Split, Task
from environments.groups import Evaluation, evaluate, run_groups
from environments.policies.base import Policy, Sampling
from rl_cli.config.tree import GrpoSection
from rl_cli.core.errors import WorkFailed

EVALUATION_SEED = 0
"""Validation and test tasks are the same for every run, so that runs can be compared."""


class Rollouts:
    """Runs an environment with a policy.

    Args:
        env: The environment.
        policy: Answers; usually the model in training. `sampler` may be set to another one for groups.
        grpo: Temperature, limits and group size.
        seed: Draws the toolsets of groups, with the step.
    """

    def __init__(self, env: Environment, policy: Policy, grpo: GrpoSection, seed: int) -> None:
        self.env, self.policy, self.grpo = env, policy, grpo
        self.sampler = policy
        self.seed = seed
        self._runner = asyncio.Runner()
        self._tasks: dict[Split, list[Task]] = {}
        self._limits = Limits(max_turns=grpo.max_turns)

    def __enter__(self) -> Rollouts:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._runner.close()

    def tasks(self, split: Split, count: int) -> list[Task]:
        """The first `count` tasks of a split, or all where there are fewer.

        Raises:
            WorkFailed: There are none.
        """
        if len(self._tasks.get(split, [])) < count:
            self._tasks[split] = list(itertools.islice(self.env.tasks(split, EVALUATION_SEED), count))
        if not self._tasks[split]:
            raise WorkFailed(f"{self.env.name} has no {split} tasks")
        return self._tasks[split][:count]

    def evaluate(self, split: Split, count: int) -> Evaluation:
        """Answers `count` tasks of a split greedily, one rollout each.

        Raises:
            WorkFailed: The infrastructure spoilt every one of them.
        """
        sampling = Sampling(temperature=0.0, max_tokens=self.grpo.max_new_tokens)
        tasks, rng = self.tasks(split, count), random.Random(EVALUATION_SEED)
        result = self._runner.run(evaluate(self.env, tasks, self.policy, sampling, self._limits, rng))
        if result.accuracy is None:
            error = result.rollouts[0].error
            why = f"{error.kind}: {error.message}" if error else "no reason given"
            raise WorkFailed(
                f"not one of {len(tasks)} {split} tasks of {self.env.name} could be judged ({why})"
            )
        return result

    def groups(
        self, tasks: Sequence[Task], group_size: int | None = None, step: int = 0
    ) -> list[ScoredGroup]:
        """Samples one group per task at the training temperature; advances torch's random state.

        Args:
            tasks: One for each group.
            group_size: Default: the config's.
            step: Whose toolsets are drawn: a run that is resumed at it draws the same.
        """
        sampling = Sampling(temperature=self.grpo.temperature, max_tokens=self.grpo.max_new_tokens)
        size, rng = group_size or self.grpo.group_size, random.Random(f"toolsets/{self.seed}/{step}")
        return self._runner.run(run_groups(self.env, tasks, self.sampler, size, sampling, self._limits, rng))


def training_batches(env: Environment, seed: int, size: int) -> Iterator[list[Task]]:
    """Tasks of the train split for one step after another, without end.

    An endless split is read on; a finite one is shuffled anew in each pass, and the incomplete last batch
    of a pass is left out, so that no step holds a task twice.

    Raises:
        WorkFailed: The split has fewer than `size` tasks.
    """
    if env.size("train") is None:
        source = env.tasks("train", seed)
        while batch := list(itertools.islice(source, size)):
            yield batch
        raise WorkFailed(f"{env.name} ran out of train tasks")
    tasks = list(env.tasks("train", seed))
    if len(tasks) < size:
        raise WorkFailed(f"{env.name} has only {len(tasks)} train tasks, and a step needs {size}")
    for epoch in itertools.count():
        order = random.Random(f"epoch/{seed}/{epoch}").sample(tasks, len(tasks))
        for start in range(0, len(order) - size + 1, size):
            yield order[start : start + size]
