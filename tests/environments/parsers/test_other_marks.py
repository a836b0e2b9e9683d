"""Marks that are read and not written."""

from __future__ import annotations

import pytest

from environments.parsers.families import FAMILIES
from tests.environments.parsers.replay import splits, stream

KIMI_CALL = "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
LIST = '[{"name": "f", "arguments": {}}]'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kimi_k2", f"so<|tool_call_section_begin|>{KIMI_CALL}<|tool_call_section_end|>"),
        ("kimi_k2", f"so<|tool_call_section_begin|>{KIMI_CALL}<|tool_calls_section_end|>"),
        ("phi4_mini", f"so<|tool_call|>{LIST}<|/tool_call|><|end|>"),
        ("phi4_mini", f"so<|tool_call|>\n{LIST}\n<|/tool_call|>"),
        ("phi4_mini", f"so functools{LIST}"),
    ],
)
def test_other_marks_are_read(name: str, text: str) -> None:
    family = FAMILIES[name]
    parsed = family.parse(text)
    assert [(call.name, call.arguments) for call in parsed.tool_calls] == [("f", "{}")]
    assert (parsed.content, parsed.errors) == ("so", [])
    assert all(stream(family, [], pieces) == parsed for pieces in splits(text))


def test_a_broken_call_between_other_marks_leaves_the_next_alone() -> None:
    broken = '<|tool_call|>[{"name": f}]<|/tool_call|>'
    parsed = FAMILIES["phi4_mini"].parse(f"{broken}\n<|tool_call|>{LIST}<|/tool_call|>")
    assert ([call.name for call in parsed.tool_calls], parsed.content) == (["f"], broken)
