"""Reasoning of an assistant's message, wherever it stands: fields, `<think>` and other models' tags."""

from __future__ import annotations

import re
from collections.abc import Iterable

from environments.parsers.families import THINKING

_SCRATCHPAD = "REASONING_SCRATCHPAD"
_CLOSERS = {pair.opener: pair.closer for pair in THINKING}


def _any_case(*patterns: str) -> str:
    return f"(?ai:{'|'.join(patterns)})"


def _opener(tag: str) -> str:
    """A pattern; tags may have attributes."""
    return re.sub(r"(?<=\w)>\Z", r"(?:\\s[^<>]{0,80})?>", re.escape(tag))


_CLOSER_OF = {opener.lower(): re.compile(_any_case(re.escape(end))) for opener, end in _CLOSERS.items()}
_SPACE = re.compile(r"\s*")
_OPENERS = _any_case(*map(_opener, _CLOSERS))
_LEADING = re.compile(rf"\s*({_OPENERS})")
_ANYWHERE = re.compile(f"({_any_case(_opener(f'<{_SCRATCHPAD}>'))})")
_CLOSER = _any_case(*(re.escape(closer) for closer in _CLOSERS.values() if _SCRATCHPAD not in closer))
_FIRST_CLOSERS = re.compile(rf"(?:\s*+{_CLOSER})++\s*")
_ALONE = re.compile(rf"(?:\A|\n)[ \t]*{_CLOSER}|{_CLOSER}[ \t]*(?:\n|\Z)|(?<![\s`'\"(]){_CLOSER}(?![`'\"])")
_ANY_TAG = re.compile(f"{_OPENERS}|{_any_case(*map(re.escape, _CLOSERS.values()))}")


def split_thinking(text: str, opened: bool = False) -> tuple[list[str], str, bool]:
    """Takes blocks of thinking out of a text.

    `<think>`, and the tags of other models, are one at the beginning of the text or after another block:
    elsewhere they are talked about. A `<REASONING_SCRATCHPAD>` is one everywhere. Tags may be in any
    case and have attributes.

    Args:
        text: An assistant's content.
        opened: A closing tag that nothing opens ends reasoning: the template of the chat has written the
            opening one. A tag in quotes, or between spaces in a line, is talked about.

    Returns:
        The blocks, the rest of the text, and whether the last block is never closed.
    """
    blocks: list[str] = []
    rest: list[str] = []
    if opened:
        before, text = _split_opened(text)
        blocks += [before] if before else []
    at, leading = 0, _LEADING.match(text)
    while found := leading or _ANYWHERE.search(text, at):
        rest.append(text[at : found.start()])
        end = _end_of(found[1], text, found.end())
        if end is None:
            blocks.append(text[found.end() :])
            return blocks, "".join(rest), True
        blocks.append(text[found.end() : end[0]])
        at = end[1]
        if leading:
            after = _SPACE.match(text, at)
            at = after.end() if after else at
            leading = _LEADING.match(text, at)
    return blocks, "".join([*rest, text[at:]]), False


def first_block(text: str) -> tuple[str | None, str]:
    """The block of thinking that a text begins with, None where it begins with none, and what follows it.

    Raises:
        ValueError: It is never closed.
    """
    found = _LEADING.match(text)
    if not found:
        return None, text
    end = _end_of(found[1], text, found.end())
    if end is None:
        raise ValueError(f"{found[1].strip()} that is never closed")
    return text[found.end() : end[0]], text[end[1] :]


def _split_opened(text: str) -> tuple[str, str]:
    """What stands before a closing tag that nothing opens, and after it; more such tags may stand first."""
    first = _FIRST_CLOSERS.match(text)
    start = first.end() if first else 0
    closer = _ALONE.search(text, start)
    if not closer or _ANY_TAG.search(text, start, closer.start()):
        return "", text[start:]
    return text[start : closer.start()], text[closer.end() :].lstrip()


def _end_of(opener: str, text: str, start: int) -> tuple[int, int] | None:
    """Where the closing tag stands: the one in the usual case, else one in any case."""
    opener = re.sub(r"(?<=\w)\s[^<>]*>\Z", ">", opener)
    if (closer := _CLOSERS.get(opener)) and (at := text.find(closer, start)) >= 0:
        return at, at + len(closer)
    found = _CLOSER_OF[opener.lower()].search(text, start)
    return found.span() if found else None


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
