"""`rl-cli data`: conversations made, converted, cleaned, shown and exported as training data."""

from __future__ import annotations

import json
from collections import Counter
from typing import Annotated, Any

import typer

from rl_cli.cli.app import group
from rl_cli.cli.data_compress import compress
from rl_cli.cli.data_dedupe import dedupe_command
from rl_cli.cli.data_export import export_command
from rl_cli.cli.data_generate import generate, resume
from rl_cli.cli.data_list import list_command
from rl_cli.cli.data_merge import merge
from rl_cli.cli.data_redact import redact_command
from rl_cli.cli.data_sessions import export_sessions_command
from rl_cli.cli.data_show import show_command
from rl_cli.cli.data_stats import stats
from rl_cli.cli.distributions import distributions
from rl_cli.cli.jsonl import convert_lines
from rl_cli.cli.output import say
from rl_cli.core.errors import BadUsage
from rl_cli.core.json_text import repair_surrogates

MESSAGES = ("tools", "messages")
CONVERSATIONS = ("conversations", "system_messages", "tool_stats", "reasoning", "completed", "marks")
"""The fields of a line in each of the two forms; others stand beside them."""

app = group("Make training data, and convert conversations to it and back.")
app.command("export")(export_command)
app.command("redact")(redact_command)
app.command("dedupe")(dedupe_command)
app.command("show")(show_command)
app.command("export-sessions")(export_sessions_command)
app.command("distributions")(distributions)
app.command("compress")(compress)
app.command("generate")(generate)
app.command("resume")(resume)
app.command("merge")(merge)
app.command("list")(list_command)
app.command("stats")(stats)


@app.command("convert")
def convert(
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Required: read lines, print one for each.", show_default=False)
    ] = False,
    reverse: Annotated[bool, typer.Option("--reverse", help="From conversations to messages.")] = False,
) -> None:
    """Convert conversations on standard input between chat messages and the from/value form.

    Reads {"id", "tools", "messages"}, prints {"id", "conversations": [{"from", "value"}], "tool_stats", ...},
    or {"id", "rejected": why}; with --reverse the other way round. Other fields of a line are kept. How many
    were rejected is said on stderr, and is no failure. A line that is no JSON object, one with NaN in its
    tools for one, is reported there with its number and left out; the exit code is then 1.
    """
    if not jsonl:
        raise BadUsage("conversations are read as lines", "give --jsonl")
    counts: Counter[str] = Counter()
    try:
        convert_lines(lambda row: _converted(row, reverse, counts))
    finally:
        say(f"{counts['converted']} converted, {counts['rejected']} rejected", error=True)


def _converted(row: dict[str, Any], reverse: bool, counts: Counter[str]) -> dict[str, Any]:
    """The line in the other form, or why it is rejected; with its other fields, under their names."""
    from rl_cli.data.errors import NotJson, Unconvertible

    given, made = (CONVERSATIONS, MESSAGES) if reverse else (MESSAGES, CONVERSATIONS)
    others = {key: value for key, value in row.items() if key not in ("rejected", *given, *made)}
    try:
        others = _loadable(others)
        if "rejected" in row and not row.keys() & {*given}:
            raise Unconvertible(str(row["rejected"]))
        if taken := [key for key in row if key in made or key == "rejected"]:
            raise Unconvertible(f"a field named {taken[0]!r}, which the converted line has itself")
        converted = _to_messages(row) if reverse else _to_conversations(row)
    except NotJson as reason:
        raise BadUsage(str(reason)) from None
    except Unconvertible as reason:
        counts["rejected"] += 1
        return {"rejected": repair_surrogates(str(reason)), **others}
    counts["converted"] += 1
    return {**converted, **others}


def _loadable(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, with U+FFFD for halves of surrogate pairs, which most loaders of data sets refuse."""
    from rl_cli.data.strict_json import repair_escapes, require_json

    text = require_json(**fields)
    repaired = repair_escapes(text)
    return fields if repaired == text else json.loads(repaired)


def _to_conversations(row: dict[str, Any]) -> dict[str, Any]:
    from rl_cli.data.trajectory import to_conversations

    return vars(to_conversations(row.get("messages"), row.get("tools")))


def _to_messages(row: dict[str, Any]) -> dict[str, Any]:
    from rl_cli.data.trajectory import from_conversations

    tools, messages = from_conversations(row.get("conversations"), row.get("system_messages"))
    return {"tools": tools, "messages": messages}
