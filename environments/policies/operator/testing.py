"""The inference test before training, and what its figures say about starting."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from environments.policies.operator.answers import inference_line
from environments.policies.operator.steps import Call, Result, Unreadable, figure, must, text
from environments.policies.operator.wording import Voice

MORE_TASKS = 12
"""Tasks of the second test, made where none of the first few groups had signal."""


@dataclass(frozen=True)
class Tested:
    figures: str
    """The figures in one line."""
    problem: str
    """Why training could teach nothing, "" where it can."""
    file: str
    """Where the samples are."""


def check_inference(config: dict[str, Any], say: Voice, begun: str) -> Generator[Call, Result, Tested]:
    """Tests the starting checkpoint. Few groups without signal are no proof: then more are tried once."""
    tested = yield from must(Call("rl_test_inference", {}, begun))
    row = _figures(tested)
    if _flat(row) and not _all_failed(row):
        group = config.get("grpo.group_size")
        arguments = {"tasks": MORE_TASKS, "group_size": group if isinstance(group, int) else 16}
        line = inference_line(row, say)
        again = say(
            f"Inference test: {line}. So few groups prove little: once more on {MORE_TASKS} tasks.",
            f"推理测试：{line}。组数太少，不足为凭：再用 {MORE_TASKS} 道题测一次。",
        )
        tested = yield from must(Call("rl_test_inference", arguments, again))
        row = _figures(tested)
    return Tested(inference_line(row, say), _problem(row, say), text(tested.data.get("file")))


def _figures(tested: Result) -> dict[str, Any]:
    rows = tested.rows("results")
    if not rows:
        raise Unreadable(tested.tool, "'results' is empty")
    return rows[0]


def _flat(row: dict[str, Any]) -> bool:
    share = figure(row.get("groups_without_signal"))
    return share is not None and share >= 1


def _all_failed(row: dict[str, Any]) -> bool:
    errors, rollouts = row.get("errors"), figure(row.get("rollouts"))
    failed = sum(figure(count) or 0 for count in errors.values()) if isinstance(errors, dict) else 0
    return rollouts is not None and 0 < rollouts <= failed


def _problem(row: dict[str, Any], say: Voice) -> str:
    if _all_failed(row):
        return say("Every rollout failed, so nothing can be judged", "所有 rollout 都失败，无从判断")
    if not _flat(row):
        return ""
    accuracy = figure(row.get("accuracy"))
    if accuracy is not None and accuracy >= 1:
        return say(
            "No group has signal: every task is solved every time, so GRPO has nothing left to learn",
            "没有任何组有信号：每道题每次都做对，GRPO 已无可学",
        )
    if accuracy == 0:
        return say(
            "No group has signal: no task is ever solved, so GRPO has no success to learn from; easier tasks "
            "or a better starting checkpoint help",
            "没有任何组有信号：一道题都没做对过，GRPO 无成功样本可学；需要更易的题目或更好的起始检查点",
        )
    return say(
        "No group has signal: within each group all rewards are equal, so GRPO has nothing to compare",
        "没有任何组有信号：每组内奖励全部相同，GRPO 无从比较",
    )
