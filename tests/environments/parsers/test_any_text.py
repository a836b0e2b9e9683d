"""Any text at all: read without an exception, the same in any pieces, and nothing of it is lost."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from environments.parsers.base import Parsed
from environments.parsers.families import FAMILIES
from environments.parsers.parser import Family
from tests.environments.parsers.calls import TOOLS, soup
from tests.environments.parsers.replay import in_pieces, stream


@given(soup(), st.data())
def test_marks_in_any_order(made: tuple[Family, str], data: st.DataObject) -> None:
    family, text = made
    whole = family.parse(text, TOOLS)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert stream(family, TOOLS, pieces) == whole
    assert stream(family, TOOLS, in_pieces(text, 1)) == whole


@given(soup())
def test_every_word_is_somewhere(made: tuple[Family, str]) -> None:
    family, text = made
    parsed = family.parse(text, TOOLS)
    assert lost(text, parsed) == []


@given(st.sampled_from(list(FAMILIES.values())), st.text())
def test_text_without_marks_is_content(family: Family, text: str) -> None:
    text = re.sub(r"[<\[{`]|◁|functools", "", text)
    assert family.parse(text) == Parsed(text.strip() or None)


def lost(text: str, parsed: Parsed) -> list[str]:
    """The words `w1`, `w2`, ... of the text that are in no part of the result."""
    told = [parsed.content or "", parsed.reasoning or ""]
    told += [part for call in parsed.tool_calls for part in (call.name, call.id, call.arguments)]
    told += [error.reason for error in parsed.errors]
    found = set(re.findall(r"w\d+w", "\0".join(told)))
    return [word for word in re.findall(r"w\d+w", text) if word not in found]
