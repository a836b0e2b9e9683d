"""Rows as trajectories of ATIF, Harbor's Agent Trajectory Interchange Format, version 1.7.

Spec: https://harborframework.com/docs/trajectory-format. A step is what a person, the system or the agent
said; results are the observation of the step whose calls they answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

from rl_cli.core.messages import Message, ToolCall
from rl_cli.data.blocks import valid_arguments
from rl_cli.data.strict_json import strict_json

VERSION = "ATIF-v1.7"
SOURCES = {"system": "system", "user": "user", "assistant": "agent"}


def to_atif(row: dict[str, Any]) -> dict[str, Any]:
    """One trajectory; fields without a value are left out, as the format asks.

    Arguments that are no JSON object, which the format lacks, stand as text in the call's `extra`.
    """
    key, model = str(row.get("key") or "row"), row.get("model")
    steps = [{"step_id": number, **step} for number, step in enumerate(_steps(row["messages"]), 1)]
    agent = {
        "name": "rl-cli",
        "version": version("rl-flywheel"),
        "model_name": model if isinstance(model, str) else None,
        "tool_definitions": row["tools"] or None,
    }
    known = ("completed", "score", "marks", "sampling", "seed", "toolsets", "metadata")
    return _filled(
        {
            "schema_version": VERSION,
            "session_id": key,
            "trajectory_id": key,
            "agent": _filled(agent),
            "steps": steps,
            "final_metrics": _metrics(row, len(steps)),
            "extra": _filled({name: row.get(name) for name in known}) or None,
        }
    )


def _steps(messages: Sequence[Message]) -> Iterator[dict[str, Any]]:
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            continue
        results = []
        for result in messages[at + 1 :]:
            if result["role"] != "tool":
                break
            results.append({"source_call_id": result["tool_call_id"], "content": result["content"] or ""})
        calls = [_call(call) for call in message.get("tool_calls", ())]
        yield _filled(
            {
                "source": SOURCES[message["role"]],
                "message": message["content"] or "",
                "reasoning_content": message.get("reasoning"),
                "tool_calls": calls or None,
                "observation": {"results": results} if results else None,
            }
        )


def _call(call: ToolCall) -> dict[str, Any]:
    text = call["function"]["arguments"]
    valid = valid_arguments(text)
    return _filled(
        {
            "tool_call_id": call["id"],
            "function_name": call["function"]["name"],
            "arguments": strict_json(text) if valid else {},
            "extra": None if valid else {"invalid_arguments": text},
        }
    )


def _metrics(row: dict[str, Any], steps: int) -> dict[str, Any]:
    found = row.get("usage")
    usage = found if isinstance(found, dict) else {}
    return _filled(
        {
            "total_prompt_tokens": _number(usage.get("input_tokens")),
            "total_completion_tokens": _number(usage.get("output_tokens")),
            "total_cached_tokens": _number(usage.get("cached_tokens")),
            "total_cost_usd": _number(row.get("cost_usd")),
            "total_steps": steps,
        }
    )


def _number(value: Any) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
