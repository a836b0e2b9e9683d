"""Canonical messages <-> the from/value form of conversations, with the roles system, human, gpt, tool.

The system turn holds the instructions for calling functions, with the tools' schemas. System messages are no
turns: they are kept beside the conversation. `gpt_turns` says how the others look.

What looks like markup in values is escaped (see `markup`), so who looks for tags finds ours only, and
`from_conversations` gives back what `canonical` made of the messages. It reads others' conversations in this
form too, but never guesses: what is not quite the form is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from prompts.loader import render
from rl_cli.core.cuts import one_line
from rl_cli.core.json_text import repair_surrogates, to_json
from rl_cli.core.messages import Message, system, user
from rl_cli.data.canonical import canonical
from rl_cli.data.errors import Unconvertible
from rl_cli.data.gpt_turns import read_gpt, write_gpt, write_results
from rl_cli.data.markup import escape_json, escape_text, unescape_text
from rl_cli.data.strict_json import DEEPEST, require_json, strict_json, too_deep
from rl_cli.data.tool_stats import ToolCount, reasoning_coverage, tool_stats

ROLES = ("system", "human", "gpt", "tool")
Turn = TypedDict("Turn", {"from": str, "value": str})


class SystemMessage(TypedDict):
    at: int
    """Its place among all messages, from 0."""
    content: str


@dataclass(frozen=True)
class Trajectory:
    conversations: list[Turn]
    system_messages: list[SystemMessage]
    tool_stats: dict[str, ToolCount]
    reasoning: dict[str, int]
    completed: bool
    """The conversation ends with a whole answer; whether it is right is another question."""
    marks: list[str]
    """What a reader should know (docs/trajectories.md), sorted."""


def to_conversations(messages: Any, tools: Any = None) -> Trajectory:
    """Converts one conversation.

    Args:
        messages: From JSON, in any of the forms of `shapes`.
        tools: OpenAI schemas, with or without `{"type": "function"}` around them, or names.

    Raises:
        Unconvertible: It says why; NotJson where the tools hold NaN or an infinity.
    """
    schemas = tool_schemas(tools)
    conversation = canonical(messages)
    names = {schema["function"]["name"] for schema in schemas}
    stats = tool_stats(conversation.messages)
    if stats.keys() - names:
        conversation.marks.add("unknown_tool")
    written = ",\n".join(map(to_json, schemas))
    instructions = render("function_calling", tools=escape_json(f"[{written}]"))
    return Trajectory(
        [{"from": "system", "value": instructions}, *_turns(conversation.messages)],
        [
            {"at": at, "content": message["content"] or ""}
            for at, message in enumerate(conversation.messages)
            if message["role"] == "system"
        ],
        stats,
        reasoning_coverage(conversation.messages),
        conversation.completed,
        sorted(conversation.marks),
    )


def from_conversations(
    conversations: Any, system_messages: Any = None
) -> tuple[list[dict[str, Any]], list[Message]]:
    """The tools' schemas and the canonical messages of a conversation.

    Args:
        conversations: The turns, from JSON.
        system_messages: Those that `to_conversations` kept beside them, or their JSON text.

    Raises:
        Unconvertible: It is not in this form; it says which turn.
    """
    turns = [_read_turn(turn) for turn in _listed(conversations)]
    if not turns:
        raise Unconvertible("no conversations")
    tools: list[dict[str, Any]] = []
    messages: list[Message] = []
    for number, (role, value) in enumerate(turns):
        before = turns[number - 1][0] if number else None
        after, results = turns[number + 1] if number + 1 < len(turns) else (None, None)
        try:
            if role == "system" and number == 0 and "<tools>" in value:
                tools = _read_tools(value)
            elif role == "system":
                messages.append(system(value))
            elif role == "human":
                messages.append(user(unescape_text(value)))
            elif role == "gpt":
                messages += read_gpt(value, results if after == "tool" else None, f"call_{number}")
            elif before != "gpt":
                raise ValueError("results that follow no gpt turn")
        except (ValueError, RecursionError) as error:
            raise Unconvertible(f"turn {number}: {error}") from None
    for at, content in map(_read_system, _kept(system_messages)):
        if not 0 <= at <= len(messages):
            raise Unconvertible(
                f"a system message stands at {one_line(str(at), 20)} of {len(messages)} messages"
            )
        messages.insert(at, system(content))
    return tools, messages


def _turns(messages: Sequence[Message]) -> Iterator[Turn]:
    for at, message in enumerate(messages):
        if message["role"] == "user":
            yield {"from": "human", "value": escape_text(message["content"] or "")}
        elif message["role"] == "assistant":
            end = at + 1
            while end < len(messages) and messages[end]["role"] == "tool":
                end += 1
            results = messages[at + 1 : end]
            yield {"from": "gpt", "value": write_gpt(message, results)}
            if results:
                yield {"from": "tool", "value": write_results(results)}


def _read_turn(turn: Any) -> tuple[str, str]:
    if not isinstance(turn, dict):
        raise Unconvertible("a turn is no object with a role as from and a text as value")
    role, value = turn.get("from"), turn.get("value")
    if role not in ROLES:
        raise Unconvertible(f"unknown role {one_line(repr(role), 40)} of a turn; known: {', '.join(ROLES)}")
    if not isinstance(value, str):
        raise Unconvertible(f"a {role} turn without a text as value")
    return role, repair_surrogates(value)


def _kept(system_messages: Any) -> list[Any]:
    if not isinstance(system_messages, str):
        return _listed(system_messages)
    try:
        return _listed(strict_json(system_messages))
    except (ValueError, RecursionError) as error:
        raise Unconvertible(f"system_messages are a text that is no JSON list: {error}") from None


def _read_system(message: Any) -> tuple[int, str]:
    at, content = (message.get("at"), message.get("content")) if isinstance(message, dict) else (None, None)
    if type(at) is not int or not isinstance(content, str):
        raise Unconvertible("a system message is no object with a number as at and a text as content")
    return at, repair_surrogates(content)


def _read_tools(value: str) -> list[dict[str, Any]]:
    """The schemas in a system turn: a list, or one on each line."""
    before = value.rpartition("</tools>")[0]
    _, opener, inside = before.rpartition("<tools>")
    if not opener:
        raise ValueError("<tools> without </tools>")
    inside = inside.strip()
    listed = strict_json(inside if inside.startswith("[") else f"[{','.join(inside.splitlines())}]")
    return [_schema(tool) for tool in listed]


def tool_schemas(tools: Any) -> list[dict[str, Any]]:
    """The tools' schemas in OpenAI's form, of tools as they stand in a line.

    Args:
        tools: A list, or its JSON text, of schemas of OpenAI's or Anthropic's, or names; or None.

    Raises:
        Unconvertible: It says why; NotJson where they hold NaN or an infinity.
    """
    if isinstance(tools, str):
        try:
            tools = strict_json(tools) if tools.strip() else []
        except (ValueError, RecursionError) as error:
            raise Unconvertible(f"tools are a text that is no JSON list: {error}") from None
    listed = _listed(tools)
    require_json(tools=listed)
    schemas = [_schema(tool) for tool in listed]
    if too_deep(require_json(tools=schemas)):
        raise Unconvertible(f"tools are nested more than {DEEPEST} levels deep")
    return schemas


def _schema(tool: Any) -> dict[str, Any]:
    """A tool's schema in OpenAI's form."""
    if isinstance(tool, str):
        return {"type": "function", "function": {"name": tool}}
    function = tool.get("function", tool) if isinstance(tool, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise Unconvertible(f"a tool is neither a schema with a name nor a name: {one_line(repr(tool), 60)}")
    if function is not tool:
        return tool
    renamed = {"parameters" if key == "input_schema" else key: value for key, value in tool.items()}
    return {"type": "function", "function": renamed}


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Unconvertible("tools, conversations and system_messages are lists")
    return value
