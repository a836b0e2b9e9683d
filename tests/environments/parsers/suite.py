"""The cases of `tool_calls.jsonl`: inputs with the right answer, and how a result is judged."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from environments.parsers.base import Parsed
from environments.parsers.families import family_of
from environments.parsers.parser import Family
from tests.components import cases

THINKING = (("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("<seed:think>", "</seed:think>"))


@dataclass(frozen=True)
class Case:
    id: str
    family: Family
    text: str
    tools: list[dict[str, Any]]
    answers: Sequence[dict[str, Any]]
    """Any of them is right."""
    has_reasoning: bool
    strictness: str
    time_limit_s: float | None
    """On the machine where `CALIBRATION_S` was measured."""

    def accepts(self, parsed: Parsed) -> bool:
        return any(_is(answer, parsed) for answer in self.answers) and self._keeps_reasoning(parsed)

    def _keeps_reasoning(self, parsed: Parsed) -> bool:
        for opener, closer in THINKING if self.has_reasoning else ():
            if closer in self.text:
                block = self.text.split(closer, 1)[0].split(opener, 1)[-1].strip()
                return block in (parsed.reasoning or "") or block in (parsed.content or "")
        return True


def load() -> list[Case]:
    return [_case(row) for row in _rows()]


def floods() -> Iterator[tuple[Case, Case]]:
    """The cases in which something is repeated, and the same with four times as much of it."""
    for row in _rows():
        if row.get("repeat"):
            more = {**row["repeat"], "count": 4 * row["repeat"]["count"]}
            yield _case(row), _case({**row, "repeat": more})


def _rows() -> list[dict[str, Any]]:
    with (cases() / "tool_calls.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _case(row: dict[str, Any]) -> Case:
    row = _repeated(row, row["repeat"]) if row.get("repeat") else row
    return Case(
        row["id"],
        family_of(row["family"], row.get("variant") or ""),
        row["text"],
        row.get("tools") or [],
        [row["expect"], *row.get("accept", [])],
        bool(row.get("reasoning")),
        row["strictness"],
        row.get("time_limit_s"),
    )


def _repeated(value: Any, repeat: dict[str, Any]) -> Any:
    """The value with the token that stands for a long text written out."""
    if isinstance(value, str):
        return value.replace(repeat["token"], repeat["unit"] * repeat["count"])
    if isinstance(value, list):
        return [_repeated(inside, repeat) for inside in value]
    if isinstance(value, dict):
        return {
            key: inside if key == "repeat" else _repeated(inside, repeat) for key, inside in value.items()
        }
    return value


def _is(answer: dict[str, Any], parsed: Parsed) -> bool:
    """`*` stands for anything."""
    content, calls = answer["content"], answer["tool_calls"]
    if content != "*" and (content or "").strip() != (parsed.content or ""):
        return False
    found = [{"name": call.name, "arguments": json.loads(call.arguments)} for call in parsed.tool_calls]
    return calls == "*" or same_json(
        [{key: call[key] for key in ("name", "arguments")} for call in calls], found
    )


def same_json(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is 1.0, but true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
