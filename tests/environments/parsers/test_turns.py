"""What stands around the calls of a turn: thinking, text, broken calls, stop tokens. On the Hermes form."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from environments.parsers.base import ParsedCall
from environments.parsers.events import CallBroken, CallFinished, ContentDelta, Restarted
from environments.parsers.families import FAMILIES
from environments.parsers.output import MOST_BROKEN
from environments.parsers.parser import StreamParser
from tests.environments.parsers.replay import splits, stream

HERMES = FAMILIES["hermes"]
CALL = '<tool_call>\n{"name": "a", "arguments": {"x": 1}}\n</tool_call>'


def test_calls_reasoning_and_content_are_told_apart() -> None:
    parsed = HERMES.parse(f"<think>\nhm\n</think>\n\nLooking.\n{CALL}\n{CALL}<|im_end|>\n")
    assert (parsed.reasoning, parsed.content, parsed.errors) == ("hm", "Looking.", [])
    assert [(call.name, call.arguments) for call in parsed.tool_calls] == [("a", '{"x": 1}')] * 2


def test_of_very_many_broken_calls_the_first_are_told_of_and_the_others_counted() -> None:
    parsed = HERMES.parse(f"{CALL[:20]}\n" * 5000 + CALL)
    assert (len(parsed.tool_calls), len(parsed.errors)) == (1, MOST_BROKEN + 1)
    assert parsed.errors[-1].reason == f"here and after it, {5000 - MOST_BROKEN} more that are no calls"
    assert parsed.errors[-1].position > parsed.errors[-2].position
    assert parsed.content
    assert parsed.content.count(CALL[:20]) == 5000


@pytest.mark.parametrize(
    ("text", "reasoning", "content", "calls"),
    [
        ("opened in the prompt</think>done", "opened in the prompt", "done", 0),
        (f"draft {CALL}\n</think>\n{CALL}", f"draft {CALL}", None, 1),
        (f"<think>cut off {CALL}", f"cut off {CALL}", None, 0),
        ("<think>a</think><think>b</think>c", "a\nb", "c", 0),
        ("the tag `</think>` ends it", None, "the tag `</think>` ends it", 0),
        ("it writes <think> first", None, "it writes <think> first", 0),
        ("it writes <think>...</think>", None, "it writes <think>...</think>", 0),
        (f"Hello <think>plan {CALL}", f"plan {CALL}", "Hello", 0),
        (f"Hello <think>\nplan {CALL}\n</think>\n{CALL}", f"plan {CALL}", "Hello", 1),
        ("just text", None, "just text", 0),
        ("", None, None, 0),
        (" \n ", None, None, 0),
        ("the token `<|im_end|>` ends it", None, "the token `<|im_end|>` ends it", 0),
        (f"{CALL} and after", None, "and after", 1),
    ],
)
def test_thinking(text: str, reasoning: str | None, content: str | None, calls: int) -> None:
    parsed = HERMES.parse(text)
    assert (parsed.reasoning, parsed.content, len(parsed.tool_calls)) == (reasoning, content, calls)
    assert parsed.errors == []


@pytest.mark.parametrize("name", ["scratch_pad", "REASONING_SCRATCHPAD", "thinking", "reasoning"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_scratch_pad_stays_and_holds_no_calls(family: str, name: str) -> None:
    call = FAMILIES[family].render([ParsedCall("a", '{"x": "1"}')])
    pad = f"<{name}>\nPlan:\n{call}\n</{name}>"
    parsed = FAMILIES[family].parse(f"{pad}\n{call}")
    assert (parsed.content, len(parsed.tool_calls), parsed.errors) == (pad, 1, [])


@pytest.mark.parametrize(
    ("family", "tag"), [("hunyuan_a13b", "answer"), ("ernie45", "response"), ("granite", "response")]
)
def test_the_tags_around_an_answer_are_dropped(family: str, tag: str) -> None:
    call = FAMILIES[family].render([ParsedCall("a", "{}")])
    parsed = FAMILIES[family].parse(f"<think>\nhm\n</think>\n<{tag}>\nDone.\n</{tag}>\n{call}")
    assert (parsed.reasoning, parsed.content, len(parsed.tool_calls)) == ("hm", "Done.", 1)
    text = f"It writes <{tag}>, then </{tag}>."
    assert FAMILIES[family].parse(text).content == text


@pytest.mark.parametrize(
    "after", [f"\n<|im_start|>user\n{CALL}", f"\n{CALL}<|im_end|>", "</think>", f"<think>{CALL}"]
)
@pytest.mark.parametrize("before", ["", "so", f"so\n{CALL}"])
def test_what_follows_the_end_of_the_turn_is_kept_and_not_read(before: str, after: str) -> None:
    text = f"{before}<|im_end|>{after}"
    parsed = HERMES.parse(text)
    assert parsed.content == before.removesuffix(CALL) + text.removeprefix(before)
    assert (len(parsed.tool_calls), parsed.reasoning) == (CALL in before, None)
    assert [error.position for error in parsed.errors] == [len(before)]
    assert "<|im_end|> has ended the turn" in parsed.errors[0].reason
    assert all(stream(HERMES, [], pieces) == parsed for pieces in splits(text))


def test_messages_of_gpt_oss_follow_their_end_tokens() -> None:
    call = "<|channel|>commentary to=functions.a<|message|>{}<|call|>"
    assert len(FAMILIES["gpt_oss"].parse(f"{call}<|end|>{call}").tool_calls) == 2


def test_a_block_that_the_prompt_opened() -> None:
    parsed = HERMES.parse(f"so {CALL}</think>{CALL}", in_reasoning=True)
    assert (parsed.reasoning, len(parsed.tool_calls)) == (f"so {CALL}", 1)
    assert HERMES.parse(f"so {CALL}", in_reasoning=True).tool_calls == []


def test_text_between_two_calls_is_told_of() -> None:
    parsed = HERMES.parse(f"one {CALL} two {CALL} three")
    assert parsed.content == "one  three"
    assert [(error.position, error.reason) for error in parsed.errors] == [
        (4 + len(CALL), "text between two calls: two")
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('<tool_call>{"name": "a", "arguments": {"x":', "cut off"),
        ("<tool_call>{'name': 'a'}</tool_call>", "double quotes"),
        ('<tool_call>{"arguments": {}}</tool_call>', "no name"),
        ('<tool_call>{"name": "a", "arguments": [1]}</tool_call>', "no JSON object"),
        ('<tool_call>{"name": "a", "arguments": "{\\"x\\": NaN}"}</tool_call>', "no JSON object"),
        ("<tool_call>" + "[" * 100_000, "JSON object"),
        ("<tool_call>" + '{"name": "a", "arguments": ' + '{"a":[' * 100_000, "500 levels"),
    ],
)
def test_a_broken_call_is_an_error_and_stays_in_the_text(text: str, reason: str) -> None:
    parsed = HERMES.parse(f"so: {text}\n{CALL}" if text.endswith("</tool_call>") else f"so: {text}")
    assert [error.position for error in parsed.errors] == [4]
    assert reason in parsed.errors[0].reason
    assert parsed.content == f"so: {text}"
    assert len(parsed.tool_calls) == text.endswith("</tool_call>")


def test_what_follows_a_whole_call_does_not_undo_it() -> None:
    parsed = HERMES.parse('<tool_call>{"name": "a"} more</tool_call>')
    assert [call.name for call in parsed.tool_calls] == ["a"]
    assert "something else than </tool_call>" in parsed.errors[0].reason
    assert parsed.content == "more</tool_call>"


def test_keys_that_are_no_part_of_a_call_are_told_of() -> None:
    parsed = HERMES.parse('<tool_call>{"type": "function", "name": "a", "argument": {"x": 1}}</tool_call>')
    assert [(call.name, call.arguments) for call in parsed.tool_calls] == [("a", "{}")]
    assert [error.reason for error in parsed.errors] == [
        'a call has more than name and arguments: "argument": {"x": 1}'
    ]


@pytest.mark.parametrize(
    "text", ['{"arguments": {"x": %s}, "name": "a"}', '{"name": "a", "arguments": {"x": %s}}']
)
def test_numbers_that_python_refuses_are_read(text: str) -> None:
    digits = "7" * (sys.get_int_max_str_digits() + 1)
    (call,) = HERMES.parse(f"<tool_call>{text % digits}</tool_call>").tool_calls
    assert call.arguments == f'{{"x": {digits}}}'


def test_what_a_stream_takes_back_it_says() -> None:
    parser = StreamParser(HERMES)
    told = parser.feed('<tool_call>{"name": "a", "arguments": {"x": 1')
    assert not any(isinstance(event, ContentDelta) for event in told)
    assert isinstance(parser.end()[0], CallBroken)

    parser = StreamParser(HERMES)
    assert any(isinstance(event, CallFinished) for event in parser.feed(CALL))
    assert isinstance(parser.feed("\n</think>\n")[0], Restarted)
    assert parser.parsed().tool_calls == []


def test_the_end_of_a_cut_stream_gives_back_what_was_held() -> None:
    parser = StreamParser(HERMES)
    assert parser.feed("Look: <tool_c") == [ContentDelta("Look:")]
    assert parser.end() == [ContentDelta(" <tool_c")]
    with pytest.raises(ValueError, match="ended"):
        parser.feed("more")


def test_a_call_deep_in_the_stack_is_read() -> None:
    """The standard library's scanner recurses: where the stack is full, it is done without it."""

    def deeper(levels: int) -> str:
        if levels:
            return deeper(levels - 1)
        deep = "[" * 300 + "]" * 300
        text = json.dumps({"arguments": json.dumps({"x": 1})})[:-1] + f', "name": "a", "id": {deep}}}'
        return HERMES.parse(f"<tool_call>{text}</tool_call>").tool_calls[0].arguments

    assert deeper(600) == '{"x": 1}'


@pytest.mark.parametrize("text", [None, b"text", b"", 5])
def test_what_is_no_text_is_a_type_error(text: Any) -> None:
    with pytest.raises(TypeError, match="must be str, not"):
        HERMES.parse(text)
