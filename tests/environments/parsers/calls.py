"""Calls of any kind, the tools that take them, and texts made of marks: for property tests and fuzzing."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import strategies as st

from environments.parsers.base import ParsedCall
from environments.parsers.families import FAMILIES
from environments.parsers.parser import Family

WORDS = (
    "</tool_call>",
    "</parameter>\n<parameter=x>",
    "</think>",
    "[TOOL_CALLS]",
    "```",
    '<|"|>',
    "\\",
    "5",
    "null",
)
texts = st.text() | st.sampled_from(WORDS) | st.lists(st.sampled_from([*WORDS, "\n", '"', "'"])).map("".join)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(texts, inside, max_size=3),
    max_leaves=8,
)
names = st.from_regex(r"[a-z_][A-Za-z0-9_-]{0,30}", fullmatch=True)
keys = st.from_regex(r"[a-z_][A-Za-z0-9_]{0,20}", fullmatch=True)


@st.composite
def calls(
    draw: st.DrawFn, names: st.SearchStrategy[str] = names, keys: st.SearchStrategy[str] = keys
) -> ParsedCall:
    arguments = json.dumps(
        draw(st.dictionaries(keys, values, max_size=4)),
        ensure_ascii=draw(st.booleans()),
        indent=draw(st.sampled_from([None, 1])),
    )
    return ParsedCall(draw(names), arguments)


def tools_for(calls: list[ParsedCall]) -> list[dict[str, Any]]:
    """Tools whose schemas say of each argument what it is."""
    return [
        {
            "type": "function",
            "function": {
                "name": call.name,
                "parameters": {
                    "type": "object",
                    "properties": {
                        key: {"type": type_of(value)} for key, value in json.loads(call.arguments).items()
                    },
                },
            },
        }
        for call in calls
    ]


def type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds = {str: "string", int: "integer", float: "number", dict: "object", list: "array"}
    return kinds.get(type(value), "null")


def pieces(family: Family) -> list[str]:
    """A turn with two calls, in pieces that mean something."""
    written = family.render([ParsedCall("f", '{"a": "x y", "b": 3}'), ParsedCall("g", "{}")])
    return re.findall(r"<[^<>\s=]*>?|\[[A-Z_/]+\]|\w+|\s+|.", written)


def marks(family: Family) -> list[str]:
    blocks = [mark for one in family.thinking for mark in (one.opener, one.closer)]
    written = pieces(family)
    return ["".join(written), *written, *family.grammar.openers, *family.stop_tokens, *blocks]


NOISE = (*"\n \"\\{}[](),:='<|é1x", "</", "```", '{"name": ', "null")
WORD = ""
"""Becomes `w0w`, `w1w`, ..., so that each can be found again."""
TOOLS = tools_for([ParsedCall("f", '{"a": "", "b": 1, "c": {}}')])


@st.composite
def soup(draw: st.DrawFn) -> tuple[Family, str]:
    """A family, and its marks in any order, or a turn of it with some things put in or taken out."""
    family = draw(st.sampled_from(list(FAMILIES.values())))
    anything = st.sampled_from([*marks(family), *NOISE]) | st.just(WORD)
    if draw(st.booleans()):
        parts = draw(st.lists(anything, max_size=40))
    else:
        parts = pieces(family) * draw(st.integers(1, 2))
        for at, other in draw(
            st.lists(st.tuples(st.integers(0, len(parts)), st.none() | anything), max_size=6)
        ):
            parts[at : at + (other is None)] = [] if other is None else [other]
    return family, "".join(part or f"w{number}w" for number, part in enumerate(parts))
