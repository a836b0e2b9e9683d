"""Groups keep their size, infrastructure failures are retried and then errors, never rewards."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from environments.agent_loop import Limits, StopReason
from environments.base import Reward, Rollout, Task
from environments.groups import evaluate, run_group, run_groups
from environments.policies.base import PolicyError, Sampling
from environments.tool_context import ToolContext
from rl_cli.core.errors import BadUsage
from tests.environments.toys import Answering, Countdown
from tools.dispatcher import ToolError

SAMPLING = Sampling()


def member(rollout_id: str) -> int:
    return int(rollout_id.split("/")[2])


def is_retry(rollout_id: str) -> bool:
    return "/retry-" in rollout_id


def test_groups_come_in_task_order_with_one_draw_of_toolsets_each() -> None:
    env, policy = Countdown(), Answering(member)
    tasks = [Task(f"countdown/{n}", {"n": n}) for n in range(6)]
    groups = asyncio.run(run_groups(env, tasks, policy, 4, SAMPLING, rng=random.Random(1)))
    assert [g.task for g in groups] == tasks
    assert {g.toolsets for g in groups} == {(), ("math",)}
    for group in groups:
        assert [r.reward.value if r.reward else None for r in group.rollouts] == [0, 1, 2, 3]
        offered = {n for rollout_id, n in policy.opened if rollout_id.startswith(group.task.id + "/")}
        assert offered == {len(group.toolsets)}
        assert group.has_signal
        assert sum(group.advantages) == pytest.approx(0)
    assert policy.most_open == 24  # all at one time
    again = asyncio.run(run_groups(env, tasks, policy, 4, SAMPLING, rng=random.Random(1)))
    assert [g.toolsets for g in again] == [g.toolsets for g in groups]


def test_a_transient_failure_is_retried_and_leaves_no_trace() -> None:
    def answer(rollout_id: str) -> int:
        if member(rollout_id) == 2 and not is_retry(rollout_id):
            raise PolicyError("endpoint down")
        return 1

    env = Countdown()
    group = asyncio.run(run_group(env, Task("countdown/0", {"n": 0}), Answering(answer), 4, SAMPLING))
    assert group.errors_by_kind() == {}
    assert len(group.rollouts) == 4
    assert ("setup", "countdown/0/2/retry-1") in env.events


class Breaking(Countdown):
    """Fails where it is told to."""

    where = ""
    error: Exception = ToolError("sandbox", "gone")

    def _break(self, where: str, ctx: ToolContext) -> None:
        if self.where == where and "/1" in ctx.task_id:
            raise self.error

    async def setup(self, task: Task, ctx: ToolContext) -> None:
        await super().setup(task, ctx)
        self._break("setup", ctx)

    async def reward(self, task: Task, rollout: Rollout, ctx: ToolContext) -> Reward:
        self._break("reward", ctx)
        return await super().reward(task, rollout, ctx)

    async def teardown(self, task: Task, ctx: ToolContext) -> None:
        await super().teardown(task, ctx)
        self._break("teardown", ctx)


@pytest.mark.parametrize(
    ("where", "error", "kind"),
    [
        ("setup", ToolError("sandbox", "gone"), "sandbox"),
        ("setup", RuntimeError("no room"), "setup"),
        ("reward", ZeroDivisionError("bug"), "reward"),
        ("reward", PolicyError("judge down"), "judge"),
        ("reward", TimeoutError(), "timeout"),
        ("teardown", OSError("busy"), "teardown"),
    ],
)
def test_what_the_environment_breaks_is_an_error_of_its_kind(where: str, error: Exception, kind: str) -> None:
    env = Breaking()
    env.where, env.error = where, error
    group = asyncio.run(run_group(env, Task("countdown/0", {"n": 0}), Answering(member), 3, SAMPLING))
    assert group.errors_by_kind() == {kind: 1}
    broken = group.rollouts[1]
    assert broken.reward is None
    assert group.advantages[1] == 0
    assert [r.reward.value for r in group.rollouts if r.reward] == [0, 2]
    setups = sorted(i for event, i in env.events if event == "setup")
    assert setups == sorted(i for event, i in env.events if event == "teardown")
    assert len(setups) == 4  # one retry


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_a_reward_that_is_no_number_is_an_error(value: Any) -> None:
    class Odd(Countdown):
        async def reward(self, task: Task, rollout: Rollout, ctx: ToolContext) -> Reward:
            return Reward(value) if value is not None else None  # type: ignore[return-value]

    group = asyncio.run(run_group(Odd(), Task("countdown/0", {"n": 0}), Answering(member), 2, SAMPLING))
    assert group.errors_by_kind() == {"reward": 2}
    assert not group.has_signal


def test_one_that_hangs_does_not_hold_the_group() -> None:
    async def forever(rollout_id: str) -> int:
        if member(rollout_id) == 0:
            await asyncio.Event().wait()
        return 1

    env, policy = Countdown(), Answering(forever)
    task = Task("countdown/0", {"n": 0})
    group = asyncio.run(run_group(env, task, policy, 3, SAMPLING, attempt_seconds=0.05, retries=0))
    assert group.errors_by_kind() == {"timeout": 1}
    assert policy.open_now == 0
    assert ("teardown", "countdown/0/0") in env.events


def test_ending_by_a_limit_is_judged_normally(tmp_path: Any) -> None:
    from environments.policies.scripted import ScriptedPolicy

    script = tmp_path / "s.yaml"
    script.write_text(
        "[{text: '7', tool_calls: [{name: calculator, arguments: {expression: 1+1}}], repeat: true}]"
    )
    env, task = Countdown(), Task("countdown/0", {"n": 0})
    limits = Limits(max_turns=2)
    group = asyncio.run(run_group(env, task, ScriptedPolicy(script), 2, SAMPLING, limits))
    assert [r.result.stop for r in group.rollouts if r.result] == [StopReason.MAX_TURNS] * 2
    assert [r.reward.value for r in group.rollouts if r.reward] == [7, 7]


def test_an_unknown_toolset_is_said_at_once() -> None:
    class Misspelt(Countdown):
        def toolsets(self, rng: random.Random) -> tuple[str, ...]:
            return ("maths",)

    with pytest.raises(BadUsage, match="maths"):
        asyncio.run(run_group(Misspelt(), Task("t/0", {"n": 0}), Answering(member), 2, SAMPLING))


def test_cancelling_tears_down() -> None:
    async def forever(rollout_id: str) -> int:
        await asyncio.Event().wait()
        return 1

    async def main() -> Countdown:
        env = Countdown()
        work = asyncio.create_task(run_group(env, Task("t/0", {"n": 0}), Answering(forever), 2, SAMPLING))
        await asyncio.sleep(0.05)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        return env

    assert [event for event, _ in asyncio.run(main()).events].count("teardown") == 2


def test_evaluation_counts_what_could_be_judged() -> None:
    class Graded(Countdown):
        async def reward(self, task: Task, rollout: Rollout, ctx: ToolContext) -> Reward:
            if task.data["n"] == 3:
                raise RuntimeError("judge down")
            return Reward(0.5, {"correct": float(task.data["n"] % 2)})

    tasks = [Task(f"t/{n}/0", {"n": n}) for n in range(6)]
    seen: list[Rollout] = []
    policy = Answering(lambda rollout_id: 1)
    evaluation = asyncio.run(evaluate(Graded(), tasks, policy, concurrency=2, on_rollout=seen.append))
    assert (evaluation.n, evaluation.errors) == (5, {"reward": 1})
    assert evaluation.accuracy == pytest.approx(2 / 5)
    assert [r.task.id for r in evaluation.rollouts] == [t.id for t in tasks]
    assert len(seen) == 6
    assert policy.most_open <= 2


def test_an_evaluation_without_verdicts_has_no_accuracy() -> None:
    evaluation = asyncio.run(evaluate(Countdown(), [], Answering(member)))
    assert (evaluation.n, evaluation.accuracy) == (0, None)


def test_reward_functions_call_tools_under_their_own_name() -> None:
    ctx = ToolContext("t")
    assert asyncio.run(ctx.call("calculator", expression="6 * 7")) == {"ok": True, "result": 42}
    assert asyncio.run(ctx.call("rl_list_runs"))["error"]["type"] == "unknown_tool"
