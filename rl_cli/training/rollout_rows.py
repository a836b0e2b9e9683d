"""Scored groups as the rows that a trainer wants, and as the figures of a step. No torch here.

A trainer gets exactly one row per rollout, in order. A rollout that the infrastructure spoilt becomes a
placeholder: one end-of-sequence token that is masked out, and no reward, so that it has no weight and nothing
else moves up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from environments.agent_loop import StopReason
from environments.base import Rollout, ScoredGroup
from environments.policies.base import TokenRecord
from rl_cli.core.messages import Message


@dataclass
class Rows:
    """One entry per rollout in each list; the inner lists of one row are of one length."""

    prompt_ids: list[list[int]] = field(default_factory=list)
    completion_ids: list[list[int]] = field(default_factory=list)
    env_mask: list[list[int]] = field(default_factory=list)
    """1 for a token that the policy sampled, 0 for one that a tool or the template inserted."""
    logprobs: list[list[float]] = field(default_factory=list)
    rewards: list[float | None] = field(default_factory=list)
    """None for a rollout without a verdict."""
    has_signal: list[bool] = field(default_factory=list)
    """Of the row's group."""

    def __len__(self) -> int:
        return len(self.prompt_ids)


def to_rows(groups: Sequence[ScoredGroup], eos: int) -> Rows:
    """Flattens groups, group by group.

    Args:
        eos: The token that stands for a rollout without tokens.

    Raises:
        ValueError: A token record whose parts differ in length.
    """
    rows = Rows()
    for group in groups:
        spare = next(
            (r.result.tokens.prompt_ids for r in group.rollouts if r.result and r.result.tokens), [eos]
        )
        for rollout in group.rollouts:
            record = rollout.result.tokens if rollout.result and not rollout.error else None
            if record is None or not record.completion_ids:
                record = TokenRecord(spare, [eos], [0], [0.0])
            lengths = {len(record.completion_ids), len(record.mask), len(record.logprobs)}
            if len(lengths) != 1 or not record.prompt_ids:
                raise ValueError(f"the token record of {rollout.task.id} is torn: lengths {sorted(lengths)}")
            rows.prompt_ids.append(list(record.prompt_ids))
            rows.completion_ids.append(list(record.completion_ids))
            rows.env_mask.append(list(record.mask))
            rows.logprobs.append(list(record.logprobs))
            rows.rewards.append(rollout.reward.value if rollout.reward else None)
            rows.has_signal.append(group.has_signal)
    return rows


def step_figures(groups: Sequence[ScoredGroup]) -> dict[str, Any]:
    """The figures of one step's rollouts, under the names of metrics.jsonl.

    `entropy` is estimated by the mean of -log p over the sampled tokens (nats, at the sampling temperature).
    """
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    rewards = [rollout.reward.value for rollout in rollouts if rollout.reward]
    records = [r.result.tokens for r in rollouts if r.reward and r.result and r.result.tokens]
    sampled = [sum(record.mask) for record in records]
    surprise = [
        -lp for record in records for lp, own in zip(record.logprobs, record.mask, strict=True) if own
    ]
    cut = [r for r in rollouts if r.reward and r.result and r.result.stop is StopReason.TOKEN_LIMIT]
    errors = Counter(rollout.error.kind for rollout in rollouts if rollout.error)
    parts: dict[str, list[float]] = {}
    for rollout in rollouts:
        for name, part in rollout.reward.parts.items() if rollout.reward else ():
            parts.setdefault(name, []).append(part)
    mean = _mean(rewards)
    figures: dict[str, Any] = {
        "reward/mean": mean,
        "reward/std": math.sqrt(_mean([(r - mean) ** 2 for r in rewards])) if rewards else math.nan,
        **{f"reward/parts/{name}": _mean(values) for name, values in sorted(parts.items())},
        "groups/with_signal": _mean([float(group.has_signal) for group in groups]),
        "entropy": _mean(surprise),
        "completion/mean_tokens": _mean([float(count) for count in sampled]),
        "completion/clipped": len(cut) / len(records) if records else 0.0,
        "rollouts/errors": sum(errors.values()),
        **{f"rollouts/errors/{kind}": count for kind, count in sorted(errors.items())},
        "tokens": sum(sampled),
    }
    if any(r.result and r.result.calls for r in rollouts):
        calls = [call for r in rollouts if r.result for call in r.result.calls]
        figures["tools/calls"] = len(calls) / len(rollouts)
        figures["tools/failed"] = sum(not call.ok for call in calls) / len(calls)
    return {name: None if isinstance(v, float) and math.isnan(v) else v for name, v in figures.items()}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def pick_samples(groups: Sequence[ScoredGroup], count: int = 2) -> list[Rollout]:
    """A few rollouts worth showing: best and worst of the first groups with signal, else the first ones."""
    telling = [group for group in groups if group.has_signal] or list(groups)
    picked: list[Rollout] = []
    for group in telling:
        judged = sorted(
            (r for r in group.rollouts if r.reward), key=lambda r: -r.reward.value if r.reward else 0.0
        )
        ends = judged[:1] + judged[-1:] if len(judged) > 1 else judged or group.rollouts[:1]
        picked += ends
        if len(picked) >= count:
            break
    return picked[:count]


def sample_fields(rollout: Rollout) -> dict[str, Any]:
    """A rollout as a row of samples.jsonl: task, prompt, completion, expected answer, reward, ..."""
    messages = rollout.messages
    first = next((i for i, m in enumerate(messages) if m["role"] == "assistant"), len(messages))
    return {
        "task_id": rollout.task.id,
        "prompt": "\n\n".join(message["content"] or "" for message in messages[:first]),
        "completion": "".join(map(_as_text, messages[first:])).strip(),
        "expected": _answer(rollout),
        "reward": rollout.reward.value if rollout.reward else None,
        "parts": rollout.reward.parts if rollout.reward else {},
        "stop": rollout.result.stop if rollout.result else None,
        "error": f"{rollout.error.kind}: {rollout.error.message}" if rollout.error else None,
    }


def task_result(rollout: Rollout) -> dict[str, Any]:
    """A rollout of an evaluation as {"task_id", "correct", "reward"}; None where nobody could judge it."""
    reward = rollout.reward
    correct = reward.parts.get("correct") if reward else None
    return {
        "task_id": rollout.task.id,
        "correct": None if correct is None else correct > 0.5,
        "reward": reward.value if reward else None,
    }


def _answer(rollout: Rollout) -> str | float | None:
    """The task's answer, where its data has one that a file can hold."""
    answer = rollout.task.data.get("answer")
    return answer if isinstance(answer, str | int | float) or answer is None else str(answer)


def _as_text(message: Message) -> str:
    if message["role"] == "tool":
        return f" -> {message['content']}"
    calls = "".join(
        f" <{call['function']['name']} {call['function']['arguments']}>"
        for call in message.get("tool_calls", [])
    )
    return (message["content"] or "") + calls
