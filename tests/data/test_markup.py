"""No structure in values, in text or in JSON, and each value back character for character."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.parsers.families import FAMILIES
from rl_cli.data.markup import escape_json, escape_text, unescape_json, unescape_text
from tests.data.control_tokens import CONTROL_TOKENS

TAGS = [f"<{slash}{tag}>" for tag in ("think", "tool_call", "tool_response", "tools") for slash in ("", "/")]
TOKENS = [*CONTROL_TOKENS, *TAGS, "<REASONING_SCRATCHPAD>"]
ESCAPES = ["&lt;", "&amp;", "&amp;amp;lt;", "&#91;", "&#126;", "&#9665;", "&#65372;", "#126;", "lt;"]
JSON_ESCAPES = [r"\u003c", r"\u005b", r"\u007e", r"\u25c1", r"\uff5c", r"\u003C", r"\\", r"\n"]
PIECES = sorted({token[a:b] for token in TOKENS for a in range(len(token)) for b in range(a + 1, len(token))})
DRAWN = st.one_of(
    st.sampled_from(TOKENS), st.sampled_from(ESCAPES), st.sampled_from(PIECES), st.text(max_size=2)
)
TEXT = st.lists(DRAWN, max_size=8).map("".join)


@given(TEXT)
def test_texts_come_back_and_hold_no_token(text: str) -> None:
    escaped = escape_text(text)
    assert unescape_text(escaped) == text
    assert not [token for token in TOKENS if token in escaped]


@given(TEXT)
def test_json_keeps_its_value_and_comes_back(text: str) -> None:
    source = json.dumps([text, {text: text}], ensure_ascii=False)
    escaped = escape_json(source)
    assert json.loads(escaped) == json.loads(source)
    assert unescape_json(escaped) == source
    assert not [token for token in TOKENS if token in escaped]


@given(st.lists(st.one_of(DRAWN, st.sampled_from(JSON_ESCAPES)), max_size=8).map("".join))
def test_json_that_spells_tokens_with_escapes_keeps_its_value(text: str) -> None:
    source = f'"{text.replace(chr(34), "")}"'
    try:
        value = json.loads(source)
    except ValueError:  # an escape that is cut, or a control character
        return
    readable = unescape_json(source)
    assert json.loads(readable) == value
    assert unescape_json(readable) == readable
    assert unescape_json(escape_json(readable)) == readable


def test_every_mark_of_the_parsers_is_a_token_or_begins_no_token() -> None:
    """Only words, brackets and tags with attributes, which are text to every tokenizer, are left."""
    marks = [
        mark
        for family in FAMILIES.values()
        for pair in family.thinking
        for mark in (*family.stop_tokens, *family.grammar.openers, pair.opener, pair.closer)
    ]
    left = {mark for mark in marks if escape_text(mark) == mark}
    assert {mark for mark in left if mark.endswith((">", "|", "]")) and len(mark) > 1} == set()


@pytest.mark.parametrize(
    "text",
    [
        "a < b and c > d",
        "<div><b>x</b></div>",
        "List<int> [x] [0]",
        "[INFO] ~b ]~ [e",
        "&lt;b&gt; &amp;",
        "a ｜ b",
    ],
)
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert escape_text(text) == text
    assert escape_json(json.dumps(text)) == json.dumps(text)


@pytest.mark.parametrize(
    "flood", ["<", "[", "&", "&amp;", "amp;", "<|", "<|a", "]~", "]<]a", r"\u003c", "<｜"]
)
def test_floods_take_linear_time(flood: str) -> None:
    def seconds(text: str) -> float:
        begin = time.process_time()
        unescape_text(escape_text(text))
        unescape_json(escape_json(text))
        return time.process_time() - begin

    short, long = (flood * (size // len(flood)) for size in (200_000, 800_000))
    assert min(seconds(long) for _ in range(2)) < 10 * min(seconds(short) for _ in range(3)) + 0.05
