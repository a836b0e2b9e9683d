"""Checks a converted conversation against what a row of `trajectories.jsonl` expects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any


def expand(value: Any) -> Any:
    """A row's values, with long strings written out."""
    if isinstance(value, dict) and set(value) == {"__repeat__"}:
        return value["__repeat__"]["text"] * value["__repeat__"]["times"]
    if isinstance(value, dict):
        return {key: expand(inner) for key, inner in value.items()}
    return [expand(inner) for inner in value] if isinstance(value, list) else value


def strict_json(text: str) -> Any:
    """As the strictest readers of JSON do."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def faults(row: dict[str, Any], output: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the command's line for a row."""
    expect = row["expect"]
    if "rejected" in output:
        if not expect["may_reject"] or not output["rejected"].strip():
            yield f"rejected: {output['rejected']!r}"
        return
    turns = output["conversations"]
    roles = [turn["from"] for turn in turns]
    if roles not in expect.get("acceptable_roles", [expect["roles"]]):
        yield f"roles {roles}"
    values = [turn["value"] for turn in turns]
    if "<tools>" not in values[0]:
        yield "no tools in the system turn"
    for role, value in zip(roles, values, strict=True):
        value.encode()
        if role == "gpt" and (
            not value.startswith("<think>") or value.count("<think>") != value.count("</think>")
        ):
            yield f"thinking is not one block at the beginning: {value[:80]!r}"
    for wanted in expect["must_contain"]:
        spelled = {
            wanted["text"],
            json.dumps(wanted["text"])[1:-1],
            json.dumps(wanted["text"], ensure_ascii=False)[1:-1],
        }
        if not any(text in value for text in spelled for value in picked(values, wanted["turn"])):
            yield f"lacks {wanted['text'][:60]!r}"
    for unwanted in expect["must_not_contain"]:
        if any(unwanted["text"] in value for value in picked(values, unwanted["turn"])):
            yield f"has {unwanted['text'][:60]!r}"
    for count in expect["counts"]:
        if (found := sum(value.count(count["text"]) for value in picked(values, count["turn"]))) != count[
            "n"
        ]:
            yield f"{count['text']!r} {found} times"
    yield from _blocks(expect, roles, values)
    for tool, counts in expect.get("tool_stats", {}).items():
        if output["tool_stats"].get(tool) != counts:
            yield f"statistics of {tool}: {output['tool_stats'].get(tool)}"


def picked(values: list[str], turn: int | str) -> list[str]:
    """A turn by number; all but the system turn for "any"."""
    return values[1:] if turn == "any" else values[int(turn) : int(turn) + 1]


def blocks(value: str, tag: str) -> list[Any]:
    """What is in the blocks of a turn, after its thinking."""
    said = value.partition("</think>")[2] if tag == "tool_call" else value
    return [strict_json(block) for block in re.findall(rf"<{tag}>(.*?)</{tag}>", said, re.DOTALL)]


def _blocks(expect: dict[str, Any], roles: list[str], values: list[str]) -> Iterator[str]:
    calls = [
        {"turn": number, "name": call["name"], "arguments": call["arguments"]}
        for number, value in enumerate(values)
        if roles[number] == "gpt"
        for call in blocks(value, "tool_call")
    ]
    results = [
        {"turn": number, "id": result["tool_call_id"], "name": result["name"], "content": result["content"]}
        for number, value in enumerate(values)
        if roles[number] == "tool"
        for result in blocks(value, "tool_response")
    ]
    if calls != expect.get("tool_calls", calls):
        yield f"calls {calls}"
    wanted = expect.get("tool_responses", results)
    if _in_order(results) != _in_order(wanted):
        yield f"results {results}"


def _in_order(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(results, key=lambda result: (result["turn"], str(result["id"])))
