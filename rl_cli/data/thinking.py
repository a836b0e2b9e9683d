"""Reasoning of an assistant's message, wherever it stands: fields, `<think>` and other models' tags."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SCRATCHPAD = "REASONING_SCRATCHPAD"
_CLOSERS = {f"<{name}>": f"</{name}>" for name in ("think", "thinking", "thought", "seed:think", _SCRATCHPAD)}
_CLOSERS |= {"[THINK]": "[/THINK]", "◁think▷": "◁/think▷"}
_SPACE = re.compile(r"\s*")
_LEADING = re.compile(rf"\s*({'|'.join(map(re.escape, _CLOSERS))})")
_OPENER = re.compile(f"(<{_SCRATCHPAD}>)")
_CLOSER = "|".join(re.escape(closer) for closer in _CLOSERS.values() if _SCRATCHPAD not in closer)
_ALONE = re.compile(
    rf"(?:\A|\n)[ \t]*(?:{_CLOSER})|(?:{_CLOSER})[ \t]*(?:\n|\Z)|(?<![\s`'\"(])(?:{_CLOSER})(?![`'\"])"
)
_ANY_TAG = re.compile("|".join(map(re.escape, [*_CLOSERS, *_CLOSERS.values()])))


def split_thinking(text: str, opened: bool = False) -> tuple[list[str], str, bool]:
    """Takes blocks of thinking out of a text.

    `<think>`, and the tags of other models, are one at the beginning of the text or after another block:
    elsewhere they are talked about. A scratchpad is one everywhere.

    Args:
        text: An assistant's content.
        opened: A closing tag that nothing opens ends reasoning: the template of the chat has written the
            opening one. A tag in quotes, or between spaces in a line, is talked about.

    Returns:
        The blocks, the rest of the text, and whether the last block is never closed.
    """
    blocks: list[str] = []
    rest: list[str] = []
    while opened and (closer := _ALONE.search(text)) and not _ANY_TAG.search(text, 0, closer.start()):
        blocks.append(text[: closer.start()])
        text = text[closer.end() :].lstrip()
        opened = not blocks[-1].strip()
    at, leading = 0, _LEADING.match(text)
    while found := leading or _OPENER.search(text, at):
        rest.append(text[at : found.start()])
        at = text.find(_CLOSERS[found[1]], found.end())
        if at < 0:
            blocks.append(text[found.end() :])
            return blocks, "".join(rest), True
        blocks.append(text[found.end() : at])
        at += len(_CLOSERS[found[1]])
        if leading:
            after = _SPACE.match(text, at)
            at = after.end() if after else at
            leading = _LEADING.match(text, at)
    return blocks, "".join([*rest, text[at:]]), False


def has_thinking_tag(text: str) -> bool:
    """Whether a tag of thinking stands anywhere in a text."""
    return bool(_ANY_TAG.search(text))


def join_thinking(parts: Iterable[str]) -> str:
    """The parts, what is there twice once; empty where only white space is there."""
    kept: dict[str, str] = {}
    for part in parts:
        kept.setdefault("".join(part.split()), part)
    kept.pop("", None)
    return "\n\n".join(kept.values())
