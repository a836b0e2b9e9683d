"""A conversation of canonical messages, counted as the turns of the from/value form that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from prompts.loader import render
from rl_cli.core.json_text import repair_surrogates, to_json
from rl_cli.core.messages import Message, user
from rl_cli.data.compression.conversation import ROLES, Summary, Unreadable, spliced
from rl_cli.data.errors import Unconvertible
from rl_cli.data.gpt_turns import write_gpt, write_results
from rl_cli.data.markup import escape_json, escape_text
from rl_cli.data.trajectory import tool_schemas


class ChatMessages:
    """Implements `conversation.Conversation`: the tool messages that follow one another are one turn."""

    def __init__(self, messages: Sequence[Any], tools: Any) -> None:
        self._turns: list[list[Message]] = []
        self.roles: list[str] = []
        earlier: set[str] = set()
        called: set[str] = set()
        for number, message in enumerate(messages):
            role = _checked(number, message)
            if role == "tool" and not (self.roles and self.roles[-1] in ("gpt", "tool")):
                raise Unreadable(f"message {number + 1} is a result that follows no call")
            if role == "gpt":
                earlier |= called
                called = {str(call["id"]) for call in message.get("tool_calls") or [] if call.get("id")}
            if role == "tool" and _is_late(message, earlier, called):
                raise Unreadable(f"message {number + 1} is the result of a call of an earlier turn")
            if role == "tool" and self.roles[-1] == "tool":
                self._turns[-1].append(message)
            else:
                self._turns.append([message])
                self.roles.append(role)
        self.texts = [self._text(at) for at in range(len(self._turns))]
        self.beside = [_instructions(tools)]

    def _text(self, at: int) -> str:
        turn, role = self._turns[at], self.roles[at]
        if role == "gpt":
            follows = self.roles[at + 1 : at + 2] == ["tool"]
            text = write_gpt(_with_texts(turn[0]), _named(self._turns[at + 1]) if follows else [])
        elif role == "tool":
            text = write_results(_named(turn))
        else:
            text = turn[0]["content"] or ""
            text = escape_text(text) if role == "human" else text
        return repair_surrogates(text)

    def results(self, at: int) -> list[str]:
        return [message["content"] or "" for message in self._turns[at]]

    def set_results(self, at: int, contents: Sequence[str]) -> None:
        self._turns[at] = [
            cast(Message, {**message, "content": content})
            for message, content in zip(self._turns[at], contents, strict=True)
        ]
        self.texts[at] = self._text(at)

    def summary_text(self, words: str) -> str:
        return escape_text(words)

    def items(self, summaries: Sequence[Summary]) -> tuple[list[Any], list[int]]:
        return spliced(self._turns, summaries, user)


def _checked(number: int, message: Any) -> str:
    """The message's role in the from/value form."""
    where = f"message {number + 1}"
    if not isinstance(message, Mapping) or message.get("role") not in ROLES:
        raise Unreadable(f"{where} has no role of {', '.join(ROLES)}")
    if not isinstance(message.get("content"), str | None):
        raise Unreadable(f"{where} has a content that is no text: make it canonical with rl-cli data convert")
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else [] if calls is None else [None]:
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise Unreadable(f"{where} has a call without a function and its name")
    return ROLES[message["role"]]


def _is_late(result: Mapping[str, Any], earlier: set[str], called: set[str]) -> bool:
    """Whether it answers a call of an earlier turn: the two could be parted."""
    name = str(result.get("tool_call_id"))
    return name in earlier and name not in called


def _with_texts(message: Message) -> Message:
    """With text for what rows of others hold as objects or leave out."""
    reasoning = message.get("reasoning") or cast(Any, message).get("reasoning_content")
    calls = [
        {"id": str(call.get("id") or ""), "type": "function", "function": _function(call["function"])}
        for call in message.get("tool_calls") or []
    ]
    made = {"role": "assistant", "content": message.get("content") or "", "tool_calls": calls}
    return cast(Message, made | ({"reasoning": reasoning} if isinstance(reasoning, str) else {}))


def _function(function: Mapping[str, Any]) -> dict[str, str]:
    arguments = function.get("arguments") or "{}"
    return {
        "name": function["name"],
        "arguments": arguments if isinstance(arguments, str) else to_json(arguments),
    }


def _named(results: Sequence[Message]) -> list[Message]:
    return [
        {
            "role": "tool",
            "content": message.get("content") or "",
            "tool_call_id": str(message.get("tool_call_id") or ""),
            "name": str(message.get("name") or ""),
        }
        for message in results
    ]


def _instructions(tools: Any) -> str:
    """The system turn that a row has in the from/value form."""
    try:
        written = ",\n".join(map(to_json, tool_schemas(tools)))
    except Unconvertible as error:
        raise Unreadable(f"its tools cannot be read: {error}") from None
    return render("function_calling", tools=escape_json(f"[{written}]"))
