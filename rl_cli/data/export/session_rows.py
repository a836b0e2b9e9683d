"""The assistant's own conversations as canonical rows.

A session's file tells no tokens, prices or offered tools: usage is zero with the mark `usage_unknown`, and
the tools are those that the assistant has today, with what else was called.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from rl_cli.agent.history import History
from rl_cli.agent.session_file import read_events
from rl_cli.core.errors import BadUsage
from rl_cli.core.messages import Message, system
from rl_cli.data.canonical import canonical
from rl_cli.data.rows import Row, RowUsage
from rl_cli.data.tool_stats import reasoning_coverage, tool_stats


def session_row(path: Path, toolsets: tuple[str, ...]) -> Row:
    """A whole session as one row; summaries of older turns are left out, since the turns are there.

    Args:
        path: The session's file.
        toolsets: What the assistant is offered.

    Raises:
        BadUsage: Nothing was said in it.
    """
    history = History()
    for event in read_events(path):
        if event.get("kind") != "compaction":
            history.apply(event)
    said = history.messages()
    if not any(message["role"] == "assistant" for message in said):
        raise BadUsage(
            f"nothing was answered in session {path.stem}", "rl-cli sessions list shows the others"
        )
    told: list[Message] = [system(history.system), *said] if history.system else said
    conversation = canonical(told)
    messages = conversation.messages
    stats = tool_stats(messages)
    completed = conversation.completed and history.stop == "finished"
    usage: RowUsage = {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "requests": 0}
    return {
        "key": f"{_asked(messages)}-0-0",
        "messages": messages,
        "tools": _schemas(toolsets, stats),
        "completed": completed,
        "usage": usage,
        "cost_usd": None,
        "model": history.model,
        "sampling": {},
        "seed": None,
        "toolsets": list(toolsets),
        "tool_stats": stats,
        "reasoning": reasoning_coverage(messages),
        "marks": sorted({"usage_unknown", *conversation.marks, *([] if completed else ["incomplete"])}),
        "metadata": {"session": path.stem},
    }


def _asked(messages: list[Message]) -> str:
    """16 bytes in hexadecimal digits: what was asked before the first answer."""
    first = next(at for at, message in enumerate(messages) if message["role"] == "assistant")
    text = json.dumps(messages[:first], sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _schemas(toolsets: tuple[str, ...], called: dict[str, Any]) -> list[dict[str, Any]]:
    from tools.registry import find_tool, tool_schemas

    schemas = tool_schemas(toolsets)
    offered = {schema["function"]["name"] for schema in schemas}
    others = (find_tool(name) for name in called if name not in offered)
    return [*schemas, *(tool.schema() for tool in others if tool)]
