"""Faults that users of such systems reported, by id."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.base import NEAR_EQUAL, Task, advantages
from environments.groups import run_group
from environments.policies.base import Sampling
from environments.tool_context import ToolContext
from tests.environments.toys import Answering, Countdown
from tools.dispatcher import ToolError


def test_ops_14_almost_equal_rewards_are_no_signal() -> None:
    scores, signal = advantages([0.1 + 0.2, 0.3] * 4)
    assert (scores, signal) == ([0.0] * 8, False)
    scores, signal = advantages([0.35] * 7 + [0.95])
    assert signal
    assert max(map(abs, scores)) < 10


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), max_size=16))
def test_ops_14_advantages_are_bounded_and_centred(rewards: list[float | None]) -> None:
    scores, signal = advantages(rewards)
    valid = [s for s, r in zip(scores, rewards, strict=True) if r is not None]
    assert all(s == 0 for s, r in zip(scores, rewards, strict=True) if r is None)
    assert all(abs(s) <= len(valid) ** 0.5 for s in scores)
    assert sum(scores) == pytest.approx(0, abs=1e-6)
    values = [r for r in rewards if r is not None]
    assert signal == (len(values) > 1 and max(values) - min(values) > NEAR_EQUAL * max(1, *map(abs, values)))


def test_ops_22_a_sandbox_error_keeps_the_group_whole_and_is_counted() -> None:
    class Fragile(Countdown):
        async def setup(self, task: Task, ctx: ToolContext) -> None:
            if "/2" in ctx.task_id:
                raise ToolError("sandbox", "the sandbox is gone")

    policy = Answering(lambda rollout_id: 1 + int(rollout_id.split("/")[2]) % 2)
    group = asyncio.run(run_group(Fragile(), Task("task/0", {"n": 0}), policy, 4, Sampling()))
    assert len(group.rollouts) == len(group.advantages) == 4
    assert [r.reward.value if r.reward else None for r in group.rollouts] == [1, 2, None, 2]
    assert (group.rollouts[2].error is not None, group.advantages[2]) == (True, 0.0)
    assert group.errors_by_kind() == {"sandbox": 1}
    valid = [a for a, r in zip(group.advantages, group.rollouts, strict=True) if r.reward]
    assert sum(valid) == pytest.approx(0)
    kinds = Counter("error" if r.error else "reward" for r in group.rollouts)
    assert kinds == {"error": 1, "reward": 3}
