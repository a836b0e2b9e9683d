"""Tool results cut to a length; one that is JSON stays JSON, its long texts cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rl_cli.core import cuts
from rl_cli.core.json_text import load_json, to_json

SHORTEST_TEXT = 40
"""Characters that a text inside of a JSON result keeps at least."""
SLACK = 1.1
"""A JSON result may be longer by so much than was asked for."""


def shorten_results(contents: Sequence[str], keep: int) -> list[str]:
    """The results of one turn, about `keep` characters in all: the longest are cut to one length."""
    level = _level([len(content) for content in contents], keep)
    return [content if len(content) <= level else shorten(content, level) for content in contents]


def shorten(content: str, keep: int) -> str:
    """Head and tail of a result, about `keep` characters; never longer than it was."""
    structure = _structure(content)
    if structure is None:
        return _ends(content, keep)
    longest = keep
    while longest >= SHORTEST_TEXT:
        text = to_json(_with_short_texts(structure, longest))
        if len(text) <= min(keep * SLACK, len(content)):
            return text
        longest = longest * 2 // 3
    return _ends(content, keep)


def _ends(text: str, keep: int) -> str:
    """Head and tail; the whole text where the words between them would take as much as they spare."""
    return min(cuts.ends(text, keep), text, key=len)


def _level(lengths: Sequence[int], keep: int) -> int:
    """The length to which the longest are cut so that all together have `keep`."""
    left = keep
    for count, length in zip(range(len(lengths), 0, -1), sorted(lengths), strict=True):
        if length * count >= left:
            return left // count
        left -= length
    return keep


def _structure(content: str) -> Any:
    """The object or array that a content is; None for any other text."""
    if content.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return load_json(content)
    except ValueError:
        return None


def _with_short_texts(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return _ends(value, longest)
    if isinstance(value, list):
        return [_with_short_texts(item, longest) for item in value]
    if isinstance(value, dict):
        return {key: _with_short_texts(item, longest) for key, item in value.items()}
    return value
