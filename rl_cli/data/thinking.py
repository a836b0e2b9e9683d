"""Reasoning of an assistant's message, wherever it stands: fields, `<think>`, `<REASONING_SCRATCHPAD>`."""

from __future__ import annotations

import re
from collections.abc import Iterable

_THINK, _SCRATCHPAD = "think", "REASONING_SCRATCHPAD"
_SPACE = re.compile(r"\s*")
_LEADING = re.compile(rf"\s*<({_THINK}|{_SCRATCHPAD})>")
_OPENER = re.compile(rf"<({_SCRATCHPAD})>")
_ALONE = re.compile(rf"(?:\A|\n)[ \t]*</{_THINK}>|</{_THINK}>[ \t]*(?:\n|\Z)")


def split_thinking(text: str, opened: bool = False) -> tuple[list[str], str, bool]:
    """Takes blocks of thinking out of a text.

    `<think>` is one at the beginning of the text or after another block: elsewhere it is talked about. A
    scratchpad is one everywhere.

    Args:
        text: An assistant's content.
        opened: A `</think>` at an edge of a line that no `<think>` opens ends reasoning: the template of the
            chat has written the opening tag.

    Returns:
        The blocks, the rest of the text, and whether the last block is never closed.
    """
    blocks: list[str] = []
    rest: list[str] = []
    if opened and f"<{_THINK}>" not in text and (closer := _ALONE.search(text)):
        blocks.append(text[: closer.start()])
        text = text[closer.end() :].lstrip()
    at, leading = 0, _LEADING.match(text)
    while found := leading or _OPENER.search(text, at):
        rest.append(text[at : found.start()])
        at = text.find(f"</{found[1]}>", found.end())
        if at < 0:
            blocks.append(text[found.end() :])
            return blocks, "".join(rest), True
        blocks.append(text[found.end() : at])
        at += len(f"</{found[1]}>")
        if leading:
            after = _SPACE.match(text, at)
            at = after.end() if after else at
            leading = _LEADING.match(text, at)
    return blocks, "".join([*rest, text[at:]]), False


def join_thinking(parts: Iterable[str]) -> str:
    """The parts, what is there twice once; empty where only white space is there."""
    kept: dict[str, str] = {}
    for part in parts:
        kept.setdefault("".join(part.split()), part)
    kept.pop("", None)
    return "\n\n".join(kept.values())
