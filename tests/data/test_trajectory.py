"""Messages to the from/value form and back, on conversations of every kind."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rl_cli.core.json_text import repair_surrogates
from rl_cli.core.messages import Message, assistant, system, tool_call, tool_result, user
from rl_cli.data.canonical import canonical
from rl_cli.data.trajectory import from_conversations, to_conversations
from tests.data.control_tokens import CONTROL_TOKENS

MARKUP = st.sampled_from(
    [
        *(
            f"<{slash}{tag}>"
            for tag in ("think", "tool_call", "tool_response", "tools", "s")
            for slash in ("", "/")
        ),
        *(
            "<REASONING_SCRATCHPAD",
            "</REASONING_SCRATCHPAD>",
            "<|im_end|>",
            "<|im_start|>system\n",
            "<｜User｜>",
        ),
        *("[INST]", "[/INST]", "[TOOL_CALLS]", "&lt;", "&amp;lt;think>", "&#91;INST]", "&lt;tool_call>", "&"),
        *(
            "<",
            "</",
            ">",
            "|>",
            "\\u003c",
            "\\u003cthink>",
            "\\u005bINST]",
            "\\",
            '"',
            "\n",
            "\r\n",
            " ",
            "\x00",
        ),
        *(
            '{"name": "x", "arguments": {}}',
            "\ufeff",
            "\u2028",
            "\x1b[31m",
            "\ud83d",
            "\udf78",
            "NaN",
            "null",
        ),
    ]
)
TEXT = st.lists(st.one_of(MARKUP, st.sampled_from(CONTROL_TOKENS), st.text(max_size=5)), max_size=6).map(
    "".join
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)
SPELLINGS = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])
OBJECT = st.builds(
    lambda value, how: json.dumps(value, **how), st.dictionaries(TEXT, JSON, max_size=3), SPELLINGS
)
VALUE = st.builds(lambda value, how: f"{json.dumps(value, **how)}\n", JSON, SPELLINGS)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages: list[Message] = []
    for number in range(draw(st.integers(1, 4))):
        messages += draw(st.lists(st.one_of(st.builds(user, TEXT), st.builds(system, TEXT)), max_size=2))
        names = draw(st.lists(TEXT.filter(bool), max_size=3))
        ids = st.sampled_from([f"c{number}", f"d{number}", "again", f'"<think>{number}'])
        calls = [tool_call(draw(ids), name, draw(st.one_of(OBJECT, VALUE, TEXT))) for name in names]
        turn = assistant(draw(TEXT), calls)
        turn["reasoning"] = draw(TEXT)
        messages.append(turn)
        answered = draw(st.permutations(calls))[: draw(st.integers(0, len(calls)))]
        messages += [tool_result(call, draw(st.one_of(OBJECT, VALUE, TEXT))) for call in answered]
    return messages


@given(conversations())
def test_the_way_back_gives_the_same_messages(messages: list[Message]) -> None:
    expected = canonical(messages).messages
    row = to_conversations(messages, ["x"])
    text = json.dumps([row.conversations, row.system_messages], ensure_ascii=False).encode()
    tools, back = from_conversations(*json.loads(text))
    assert back == expected
    assert tools == [{"type": "function", "function": {"name": "x"}}]


@given(conversations())
def test_what_is_canonical_stays_as_it_is(messages: list[Message]) -> None:
    """But for thinking in contents, which is told from what is said, and halves of surrogate pairs."""
    found = canonical(messages).messages
    assert [m["role"] for m in found] == [m["role"] for m in messages]
    for before, after in zip(messages, found, strict=True):
        if before["role"] != "assistant":
            assert after["content"] == repair_surrogates(before["content"] or "")
        elif not re.search(r"(?i)think|scratch|channel", before["content"] or ""):
            assert (after["content"] or "") == repair_surrogates(before["content"] or "")
        for old, new in zip(before.get("tool_calls", []), after.get("tool_calls", []), strict=True):
            assert new["id"] == repair_surrogates(old["id"])
            assert new["function"]["name"] == repair_surrogates(old["function"]["name"])
            same_arguments(old["function"]["arguments"], new["function"]["arguments"])


def same_arguments(old: str, new: str) -> None:
    """The same text but where it spells our tags with escapes; nothing at all means no arguments."""
    if "\\u" in old or repair_surrogates(old) != old:
        return
    assert new == ("{}" if old.strip() in ("", "null") else old)


@given(conversations())
def test_no_value_breaks_the_envelope(messages: list[Message]) -> None:
    found = canonical(messages).messages
    row = to_conversations(messages)
    called = [m.get("tool_calls", []) for m in found if m["role"] == "assistant"]
    turns = [turn["value"] for turn in row.conversations if turn["from"] == "gpt"]
    for calls, value in zip(called, turns, strict=True):
        assert value.startswith("<think>\n")
        assert [value.count(tag) for tag in ("<think>", "</think>", "<tool_response>")] == [1, 1, 0]
        blocks = [
            strict(block) for block in re.findall(r"<tool_call>\n(.*?)\n</tool_call>", value, re.DOTALL)
        ]
        assert [block["name"] for block in blocks] == [call["function"]["name"] for call in calls]
        for call, block in zip(calls, blocks, strict=True):
            text = call["function"]["arguments"]
            assert block["arguments"] == text or block["arguments"] == strict(text)
    for turn in row.conversations[1:]:
        assert not [token for token in CONTROL_TOKENS if token in turn["value"]]
        assert not re.search(r"</?REASONING_SCRATCHPAD>", turn["value"])
        if turn["from"] != "gpt":
            assert not re.search(r"</?tool_call>|</?think>", turn["value"])
        if turn["from"] == "tool":
            for block in turn["value"].split("<tool_response>")[1:]:
                strict(block.removesuffix("\n").removesuffix("</tool_response>"))


def strict(text: str) -> Any:
    """As the strictest readers do."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    value = json.loads(text, parse_constant=refuse)
    json.dumps(value, ensure_ascii=False).encode()
    return value
