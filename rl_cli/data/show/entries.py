"""A row as what a person reads: a heading, then entries in the order in which they happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

Role = Literal["system", "user", "thinking", "assistant", "call", "result"]


@dataclass(frozen=True)
class Entry:
    role: Role
    text: str
    tool: str = ""
    """Of a call and a result."""


def entries(messages: list[dict[str, Any]]) -> Iterator[Entry]:
    """The entries of canonical messages; one message may be several."""
    for message in messages:
        content = message["content"] or ""
        if message["role"] == "tool":
            yield Entry("result", content, message["name"])
            continue
        if message.get("reasoning"):
            yield Entry("thinking", message["reasoning"])
        if content or not message.get("tool_calls"):
            yield Entry(message["role"], content)
        for call in message.get("tool_calls", ()):
            yield Entry("call", call["function"]["arguments"], call["function"]["name"])


def facts(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What is known of a row besides its messages, as (name, value); what is not known is left out."""
    if row.get("key") is not None:
        yield "key", str(row["key"])
    if isinstance(row.get("completed"), bool):
        yield "completed", "yes" if row["completed"] else "no"
    if (score := _figure(row.get("score"))) is not None:
        yield "score", score
    if row.get("model"):
        yield "model", str(row["model"])
    if (cost := _figure(row.get("cost_usd"))) is not None:
        yield "cost", f"${cost}"
    if marks := marks_of(row):
        yield "marks", ", ".join(marks)


def _figure(value: Any) -> str | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return f"{value:.4g}"
    except OverflowError:  # a whole number that no float holds
        return f"{Decimal(value):.4g}"


def marks_of(row: dict[str, Any]) -> list[str]:
    marks = row.get("marks")
    return [mark for mark in marks if isinstance(mark, str)] if isinstance(marks, list) else []
