"""To whom a message of gpt-oss is a call."""

from __future__ import annotations

import pytest

from environments.parsers.families import FAMILIES
from tests.environments.parsers.replay import splits, stream

HARMONY = FAMILIES["gpt_oss"]
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]


@pytest.mark.parametrize(
    "header",
    [
        "<|channel|>analysis to=functions.bash code",
        "<|start|>assistant<|channel|>analysis to=functions.bash <|constrain|>json",
        "<|start|>assistant to=functions.bash<|channel|>analysis",
        "<|channel|>commentary to=bash <|constrain|>json",
        "<|channel|>analysis to=bash code",
    ],
)
def test_calls_on_the_other_channel_and_to_a_bare_name(header: str) -> None:
    text = f'<|channel|>analysis<|message|>hm<|end|>{header}<|message|>{{"x": 1}}<|call|>'
    parsed = HARMONY.parse(text, TOOLS)
    assert [(call.name, call.arguments) for call in parsed.tool_calls] == [("bash", '{"x": 1}')]
    assert (parsed.content, parsed.reasoning, parsed.errors) == (None, "hm", [])
    assert all(stream(HARMONY, TOOLS, pieces) == parsed for pieces in splits(text))


@pytest.mark.parametrize("recipient", ["python", "browser.search", "bash.run"])
def test_other_recipients_are_none_of_the_clients(recipient: str) -> None:
    text = f'<|channel|>commentary to={recipient} code<|message|>{{"x": 1}}<|call|>'
    parsed = HARMONY.parse(text, TOOLS)
    assert (parsed.tool_calls, parsed.errors, parsed.content) == ([], [], text)
    assert HARMONY.parse(text.replace(recipient, "bash")).tool_calls == []
