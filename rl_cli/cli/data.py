"""`rl-cli data convert`: conversations to training data and back."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rl_cli.cli.app import group
from rl_cli.cli.jsonl import convert_lines
from rl_cli.core.errors import BadUsage

app = group("Convert conversations to training data and back.")


@app.command("convert")
def convert(
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Read lines, print one for each.")] = False,
    reverse: Annotated[bool, typer.Option("--reverse", help="From conversations to messages.")] = False,
) -> None:
    """Convert conversations on standard input between chat messages and the from/value form.

    Reads {"id", "tools", "messages"}, prints {"id", "conversations": [{"from", "value"}], "tool_stats", ...},
    or {"id", "rejected": why}; with --reverse the other way round. A line that is no JSON object is reported
    on stderr with its number and left out; the exit code is then 1.
    """
    if not jsonl:
        raise BadUsage("conversations are read as lines", "give --jsonl")
    convert_lines(_to_messages if reverse else _to_conversations)


def _to_conversations(row: dict[str, Any]) -> dict[str, Any]:
    from dataclasses import asdict

    from rl_cli.data.errors import Unconvertible
    from rl_cli.data.trajectory import to_conversations

    try:
        return asdict(to_conversations(row.get("messages"), row.get("tools")))
    except Unconvertible as reason:
        return {"rejected": str(reason)}


def _to_messages(row: dict[str, Any]) -> dict[str, Any]:
    from rl_cli.data.errors import Unconvertible
    from rl_cli.data.trajectory import from_conversations

    try:
        tools, messages = from_conversations(row.get("conversations"), row.get("system_messages"))
    except Unconvertible as reason:
        return {"rejected": str(reason)}
    return {"tools": tools, "messages": messages}
