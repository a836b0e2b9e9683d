"""The canonical row of training data: one conversation with all that is known of how it was made."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from rl_cli.core.messages import Message
from rl_cli.data.tool_stats import ToolCount


class RowUsage(TypedDict):
    """Tokens and requests of one row."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    requests: int


class Row(TypedDict):
    """A line of `trajectories.jsonl`. All exports are made from it, and nothing but it."""

    key: str
    """`HASH-OCCURRENCE-SAMPLE`: what was asked, which of the equal questions, which of its answers."""
    messages: list[Message]
    """OpenAI's form, with the text of the thinking as `reasoning`."""
    tools: list[dict[str, Any]]
    """The schemas that were offered, in OpenAI's form."""
    completed: bool
    """The process ended by itself. Whether the answer is right, `score` says where somebody judged it."""
    usage: RowUsage
    cost_usd: float | None
    """None: the price is not known."""
    model: str
    sampling: dict[str, Any]
    seed: int | None
    toolsets: list[str]
    tool_stats: dict[str, ToolCount]
    reasoning: dict[str, int]
    """`turns` of the assistant, and how many of them `with` thinking."""
    score: NotRequired[float]
    marks: list[str]
    """What a reader should know (docs/data.md), sorted."""
    metadata: dict[str, Any]
    """The input row's own."""
