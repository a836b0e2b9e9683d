"""What the loop left of a sample -> its canonical row."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from environments.agent_loop import LoopResult, StopReason
from environments.policies.base import Usage
from rl_cli.core.messages import Message
from rl_cli.data.rows import Row
from rl_cli.data.tool_stats import reasoning_coverage, tool_stats

ENDED_BY_ITSELF = frozenset({StopReason.FINISHED, StopReason.DECLINED})


@dataclass(frozen=True)
class Asked:
    """What a row says of how it was made."""

    key: str
    model: str
    sampling: dict[str, Any]
    seed: int | None
    toolsets: tuple[str, ...]
    tools: list[dict[str, Any]]
    metadata: dict[str, Any]


def sample_row(
    asked: Asked,
    given: list[Message],
    answered: list[Message],
    result: LoopResult,
    usage: Usage,
    cost_usd: float | None,
    score: float | None = None,
    marks: Iterable[str] = (),
    answer: str | None = None,
) -> Row:
    """The row of a sample, whether it came to its end or not.

    Args:
        given: What was asked, as it is stored; its own turns and reasoning are not counted.
        answered: What came of it.
        usage: Of all attempts at it.
        cost_usd: None: the price is not known.
        marks: Beside those that the messages tell.
        answer: The final answer, where it stands elsewhere than in the last message.
    """
    messages = [_stored(message) for message in (*given, *answered)]
    reasoning = reasoning_coverage(answered)
    completed = result.stop in ENDED_BY_ITSELF
    found = set(marks)
    if not completed:
        found |= {"incomplete", str(result.stop)}
    if completed and not (result.final_text if answer is None else answer).strip():
        found.add("empty_answer")
    if not reasoning["with"]:
        found.add("no_reasoning")
    if _called(messages) - {tool["function"]["name"] for tool in asked.tools}:
        found.add("invented_tool")
    if result.call_errors or _has_bad_arguments(messages):
        found.add("bad_call")
    row = Row(
        key=asked.key,
        messages=messages,
        tools=asked.tools,
        completed=completed,
        usage={
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
            "requests": usage.requests,
        },
        cost_usd=cost_usd,
        model=asked.model,
        sampling=asked.sampling,
        seed=asked.seed,
        toolsets=list(asked.toolsets),
        tool_stats=tool_stats(messages),
        reasoning=reasoning,
        marks=sorted(found),
        metadata=asked.metadata,
    )
    if score is not None:
        row["score"] = score
    return row


def _stored(message: Message) -> Message:
    """Without what only its endpoint can read."""
    if "provider_state" not in message:
        return message
    kept = message.copy()
    del kept["provider_state"]
    return kept


def _called(messages: list[Message]) -> set[str]:
    return {call["function"]["name"] for message in messages for call in message.get("tool_calls", ())}


def _has_bad_arguments(messages: list[Message]) -> bool:
    """Whether a call's arguments are no JSON object."""
    for message in messages:
        for call in message.get("tool_calls", ()):
            try:
                read = json.loads(call["function"]["arguments"] or "{}")
            except (ValueError, RecursionError):
                return True
            if not isinstance(read, dict):
                return True
    return False
