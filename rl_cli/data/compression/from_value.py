"""A conversation whose turns are texts: the from/value form, or the same under role/content."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from rl_cli.core.json_text import load_json, repair_surrogates
from rl_cli.data.blocks import ResponseBlock, read_response, write_response
from rl_cli.data.compression.conversation import ROLES, Summary, Unreadable, spliced
from rl_cli.data.markup import escape_text

_CALL = "<tool_call>"
_BLOCK = re.compile(r"<tool_response>(.*?)</tool_response>", re.DOTALL)


class FromValue:
    """Implements `conversation.Conversation`. What a turn holds beside role and text stays as it is."""

    def __init__(self, turns: Sequence[Mapping[str, Any]], system_messages: Any) -> None:
        self._names = ("role", "content") if "role" in turns[0] else ("from", "value")
        self._turns = list(turns)
        self.roles = [self._role(number, turn) for number, turn in enumerate(turns)]
        self.texts = [repair_surrogates(turn[self._names[1]]) for turn in turns]
        if isinstance(system_messages, str):  # as exports write them
            with suppress(ValueError):
                system_messages = load_json(system_messages)
        for at, roles in enumerate(zip(self.roles, self.roles[1:], self.roles[2:], strict=False)):
            if (
                roles == ("gpt", "gpt", "tool")
                and _CALL in self.texts[at]
                and _CALL not in self.texts[at + 1]
            ):
                raise Unreadable(f"turn {at + 3} is the result of a call of an earlier turn")
        kept = system_messages if isinstance(system_messages, list) else []
        contents = [message.get("content") for message in kept if isinstance(message, dict)]
        self.beside = [repair_surrogates(content) for content in contents if isinstance(content, str)]

    def _role(self, number: int, turn: Mapping[str, Any]) -> str:
        role, text = turn.get(self._names[0]), turn.get(self._names[1])
        if not isinstance(role, str) or role not in ROLES or not isinstance(text, str):
            wanted = f"a role as {self._names[0]} and a text as {self._names[1]}"
            raise Unreadable(f"turn {number + 1} is no object with {wanted}")
        return ROLES[role]

    def results(self, at: int) -> list[str]:
        text = self.texts[at]
        if "<tool_response>" not in text:
            return [text]
        try:
            return [block.content for block in _blocks(text)]
        except ValueError:
            return []

    def set_results(self, at: int, contents: Sequence[str]) -> None:
        text = self.texts[at]
        if "<tool_response>" in text:
            blocks = zip(_blocks(text), contents, strict=True)
            written = (write_response(block._replace(content=content)) for block, content in blocks)
            text = "\n".join(f"<tool_response>\n{block}\n</tool_response>" for block in written)
        else:
            (text,) = contents
        self.texts[at] = text
        self._turns[at] = {**self._turns[at], self._names[1]: text}

    def summary_text(self, words: str) -> str:
        return escape_text(words)

    def items(self, summaries: Sequence[Summary]) -> tuple[list[Any], list[int]]:
        role = "user" if self._names[0] == "role" and "user" in self._used_roles() else "human"
        return spliced(
            [[turn] for turn in self._turns],
            summaries,
            lambda words: {self._names[0]: role, self._names[1]: escape_text(words)},
        )

    def _used_roles(self) -> set[Any]:
        return {turn.get("role") for turn in self._turns}


def _blocks(text: str) -> list[ResponseBlock]:
    """The results in a tool turn. Raises ValueError: it is not results alone."""
    if _BLOCK.sub("", text).strip():
        raise ValueError("text beside the results")
    return [read_response(found[1]) for found in _BLOCK.finditer(text)]
