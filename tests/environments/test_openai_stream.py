"""Chunks become the same message, however a server cuts and labels them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.policies.base import FinishReason, ReasoningDelta, TextDelta
from environments.policies.endpoints.errors import CutStream, StreamedError
from environments.policies.endpoints.served_text import ServedText
from environments.policies.endpoints.sse import EventStream
from environments.policies.openai.stream import Assembled, Assembly

OFFERED = ("get_weather", "get", "rl_list_runs", "stop")
TOOLS = [{"type": "function", "function": {"name": name}} for name in OFFERED]


def assemble(*chunks: dict[str, Any], done: bool = True, **settings: Any) -> Assembled:
    assembly = Assembly(settings.pop("model", "test-model"), settings.pop("tools", TOOLS), **settings)
    for chunk in chunks:
        list(assembly.feed(chunk))
    if done:
        assembly.done()
    return assembly.result()


def delta(finish: str | None = None, **values: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": values, "finish_reason": finish}]}


def piece(
    index: int | None, call_id: str | None = None, name: str | None = None, arguments: Any = None
) -> Any:
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    labels = {k: v for k, v in (("index", index), ("id", call_id)) if v is not None}
    return labels | {"function": function}


def calls_of(answer: Assembled) -> list[tuple[str, str, str]]:
    calls = answer.message.get("tool_calls", [])
    return [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls]


prose = st.text(st.characters(exclude_characters="<", exclude_categories=["Cs"]), max_size=40)
values = st.dictionaries(
    st.text(max_size=5), st.integers() | st.text(max_size=10) | st.booleans(), max_size=3
)
calls = st.lists(st.tuples(st.sampled_from(OFFERED), values.map(json.dumps)), max_size=4)

CHOICE_KEYS = ["choices", "delta", "message", "finish_reason", "usage", "prompt_tokens", "error", "x_groq"]
CALL_KEYS = ["tool_calls", "function_call", "function", "index", "id", "name", "arguments"]
KEYS = [*CHOICE_KEYS, *CALL_KEYS, "content", "text", "type", "reasoning_details"]
json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=25,
)


def cut(data: st.DataObject, text: str) -> list[str]:
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@given(st.data(), prose, prose, calls, st.sampled_from(["index", "same index", "no index", "repeated"]))
def test_any_chunking_of_a_reply_is_the_reply(data, text, thought, wanted, style):
    pieces: list[dict[str, Any]] = [{"reasoning_content": p} for p in cut(data, thought)]
    pieces += [{"content": p} for p in cut(data, text)]
    for n, (name, arguments) in enumerate(wanted):
        index = {"index": n, "same index": 0, "no index": None, "repeated": n}[style]
        later = name if style == "repeated" else None
        pieces.append({"tool_calls": [piece(index, f"c{n}", name, "")]})
        for p in cut(data, arguments):
            label = f"c{n}" if data.draw(st.booleans()) else None
            pieces.append({"tool_calls": [piece(index, label, later, p)]})
    streamed = assemble(*[delta(**p) for p in pieces], delta("stop"))
    listed = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(wanted)
    ]
    message = {"content": text, "reasoning_content": thought, "tool_calls": listed}
    whole = assemble({"choices": [{"message": message, "finish_reason": "stop"}]})
    assert streamed == whole
    assert calls_of(whole) == [(f"c{n}", *call) for n, call in enumerate(wanted)]
    assert whole.finish_reason is (FinishReason.TOOL_CALLS if wanted else FinishReason.STOP)


@given(st.data(), st.lists(prose.filter(str.strip), max_size=5), st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_cut_of_the_bytes_gives_the_same_events(data, texts, end):
    sent = [json.dumps(text, ensure_ascii=data.draw(st.booleans())) for text in texts]
    raw = "".join(f": ping{end}data: {line}{end}{end}" for line in sent).encode()
    places = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    stream, got = EventStream(), []
    for a, b in zip([0, *places], [*places, len(raw)], strict=True):
        got += stream.feed(raw[a:b])
    assert got + stream.end() == sent


def test_the_last_event_needs_no_empty_line():
    stream = EventStream()
    assert stream.feed(b'data: {"a"') == []
    assert stream.feed(b": 1}") == []
    assert stream.end() == ['{"a": 1}']


@given(st.data(), prose, prose.filter(str.strip), st.booleans())
def test_streamed_thinking_is_told_from_text(data, text, thought, tagged):
    content = f"<think>{thought}</think>\n{text}" if tagged else f"{text} < {thought}"
    served, shown = ServedText("test-model", TOOLS), []
    for p in cut(data, content):
        shown += served.show(p)
    shown += served.rest()
    said = "".join(d.text for d in shown if isinstance(d, TextDelta))
    inside = "".join(d.text for d in shown if isinstance(d, ReasoningDelta))
    expected = (thought, text) if tagged else ("", content)
    assert (inside, said) == tuple(part.strip() for part in expected)
    whole = served.read(content, has_calls=False)
    assert ((whole.content or "").strip(), whole.reasoning or "") == (said, inside)


@pytest.mark.parametrize(
    ("name", "pieces", "expected"),
    [
        (
            "same index, different ids",
            [piece(0, "a", "get", "{}"), piece(0, "b", "stop", "{}")],
            ["get", "stop"],
        ),
        (
            "same index, no ids",
            [piece(0, None, "get", '{"a":1}'), piece(0, None, "get", "{}")],
            ["get", "get"],
        ),
        ("same id for all", [piece(0, "x", "get", "{}"), piece(0, "x", "stop", '{"b":1}')], ["get", "stop"]),
        ("no labels, no arguments", [piece(None, None, "get"), piece(None, None, "stop")], ["get", "stop"]),
        ("name in pieces", [piece(0, "a", "get_"), piece(0, None, "weather", "{}")], ["get_weather"]),
        ("an offered name grows", [piece(0, "a", "get"), piece(0, None, "_weather", "{}")], ["get_weather"]),
        ("name sent again", [piece(0, "a", "get", "{"), piece(0, "a", "get", "}")], ["get"]),
        (
            "whole at the end again",
            [piece(0, "a", "get", '{"a":1}'), piece(0, "a", "get", '{"a":1}')],
            ["get"],
        ),
        (
            "index as text",
            [piece(0, "a", "get", "{"), {"index": "0", "function": {"arguments": "}"}}],
            ["get"],
        ),
        ("id comes late", [piece(0, None, "get"), piece(0, "a", None, "{}")], ["get"]),
        ("index only at first", [piece(0, "a", "get", "{"), piece(None, "a", None, "}")], ["get"]),
        ("an object", [piece(0, "a", "get", {"a": 1})], ["get"]),
        ("{} before the arguments", [piece(0, "a", "get", "{}"), piece(0, None, None, '{"a": 1}')], ["get"]),
        ("nothing at all", [piece(0, "a", "get", "{}"), piece(1), None, "?"], ["get"]),
    ],
)
def test_labels_of_calls(name, pieces, expected):
    answer = assemble(*[delta(tool_calls=[p]) for p in pieces], delta("tool_calls"))
    together = assemble(delta("tool_calls", tool_calls=pieces))
    for got in (answer, together):
        assert [call[1] for call in calls_of(got)] == expected
        assert len({call[0] for call in calls_of(got)}) == len(expected)
        assert all(call[2] == "" or json.loads(call[2]) in ({}, {"a": 1}, {"b": 1}) for call in calls_of(got))


def test_interleaved_calls_of_one_index():
    order = [("a", "get", "{"), ("b", "stop", '{"x"'), ("a", None, "}"), ("b", None, ": 1}")]
    answer = assemble(*[delta(tool_calls=[piece(0, *p)]) for p in order], delta("tool_calls"))
    assert calls_of(answer) == [("a", "get", "{}"), ("b", "stop", '{"x": 1}')]


def test_ids_are_made_unique_also_within_the_conversation():
    pieces = [piece(n, call_id, "get", "{}") for n, call_id in enumerate(["call_0", "", "call_0", None])]
    answer = assemble(delta("tool_calls", tool_calls=pieces), taken={"call_0", "call_1"})
    ids = [call[0] for call in calls_of(answer)]
    assert len({*ids, "call_0", "call_1"}) == 6
    again = assemble(delta("tool_calls", tool_calls=pieces), taken={"call_0", "call_1"})
    assert [call[0] for call in calls_of(again)] == ids


def test_the_legacy_function_call():
    parts = [{"name": "get", "arguments": ""}, {"arguments": '{"a"'}, {"arguments": ": 1}"}]
    answer = assemble(*[delta(function_call=p) for p in parts], delta("function_call"))
    assert [call[1:] for call in calls_of(answer)] == [("get", '{"a": 1}')]
    assert answer.finish_reason is FinishReason.TOOL_CALLS


@pytest.mark.parametrize("arguments", ["", " ", "null", "{}", None, "{broken"])
def test_arguments_stay_as_they_were_written(arguments):
    answer = assemble(delta("tool_calls", tool_calls=[piece(0, "a", "get", arguments)]))
    assert calls_of(answer) == [("a", "get", arguments or "")]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", "<think>hm</think>\n\nyes"),
        ("content", "hm\n</think>\n\nyes"),
        (
            "content",
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "yes"},
            ],
        ),
    ],
)
def test_thinking_in_the_content(field, value):
    message = assemble(delta("stop", **{field: value})).message
    assert (message["reasoning"], message["content"]) == ("hm", "yes")


def test_an_inline_mention_of_the_tag_is_no_thinking():
    text = "Close it with </think> and go on."
    assert assemble(delta("stop", content=text)).message == {"role": "assistant", "content": text}


@pytest.mark.parametrize(
    "content",
    [
        '<tool_call>\n{"name": "get", "arguments": {"a": 1}}\n</tool_call>',
        '<tool_call>{"name": "get", "parameters": {"a": 1}}',
        '{"name": "get", "arguments": {"a": 1}}',
        '```json\n{"name": "get", "parameters": {"a": 1}}\n```',
        '[{"name": "get", "arguments": {"a": 1}}]',
        '{"type": "function", "function": {"name": "get", "arguments": "{\\"a\\": 1}"}}',
    ],
)
def test_calls_that_came_as_text(content):
    answer = assemble(delta("stop", content=content))
    assert [call[1:] for call in calls_of(answer)] == [("get", '{"a": 1}')]
    assert answer.message["content"] is None
    assert answer.finish_reason is FinishReason.TOOL_CALLS
    assert calls_of(assemble(delta("stop", content=content), tools=())) == []


@pytest.mark.parametrize(
    "content",
    [
        'For example {"name": "get", "arguments": {}} lists them.',
        'Call it so:\n```json\n{"name": "get", "arguments": {}}\n```',
        '{"name": "unknown", "arguments": {}}',
        '{"name": "get"}',
        '{"name": "get", "arguments": {}, "price": 3}',
        "[]",
    ],
)
def test_content_that_mentions_json_stays_content(content):
    answer = assemble(delta("stop", content=content))
    assert (calls_of(answer), answer.message["content"]) == ([], content)


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS"])
def test_a_call_that_the_token_limit_cut_is_dropped(finish):
    pieces = [piece(0, "a", "get", "{}"), piece(1, "b", "stop", '{"x": "y')]
    answer = assemble(delta(finish, tool_calls=pieces))
    assert answer.finish_reason is FinishReason.LENGTH
    assert [call[1] for call in calls_of(answer)] == ["get"]
    assert answer.call_errors == ["the call of stop was cut off by the token limit"]


def test_a_cut_call_at_the_limit_is_recognised_whatever_the_finish_reason_says():
    chunks = [delta("tool_calls", tool_calls=[piece(0, "a", "get", '{"x": [1, 2')])]
    chunks.append({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 64}})
    assert assemble(*chunks, max_tokens=64).finish_reason is FinishReason.LENGTH
    assert assemble(*chunks, max_tokens=65).finish_reason is FinishReason.TOOL_CALLS


def test_finish_reasons_that_contradict_the_message():
    call = [piece(0, "a", "get", "{}")]
    assert assemble(delta("stop", tool_calls=call)).finish_reason is FinishReason.TOOL_CALLS
    assert assemble(delta("tool_calls", content="hi")).finish_reason is FinishReason.STOP
    assert assemble(delta("eos", content="hi")).finish_reason is FinishReason.STOP
    assert assemble(delta(content="hi")).finish_reason is FinishReason.STOP
    assert assemble(delta("content_filter", content="hi")).finish_reason is FinishReason.CONTENT_FILTER


@pytest.mark.parametrize(
    "chunks",
    [
        [],
        [delta(content="half a sent")],
        [delta(tool_calls=[piece(0, "a", "get", "{}")])],
        [delta("abort", content="half")],
        [delta("error")],
    ],
)
def test_a_stream_without_an_end_is_cut(chunks):
    with pytest.raises(CutStream):
        assemble(*chunks, done=False)


def test_an_end_is_a_finish_reason_or_done_or_the_usage_that_comes_last():
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    assert assemble(delta(content="hi"), usage, done=False).message["content"] == "hi"
    assert assemble(delta("stop"), done=False).message["content"] is None
    cumulative = delta(content="hi") | {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    with pytest.raises(CutStream):
        assemble(cumulative, done=False)
    with pytest.raises(CutStream):  # [DONE] does not complete a call
        assemble(delta(tool_calls=[piece(0, "a", "get", '{"x": ')]))


@pytest.mark.parametrize("chunk", [{"error": "boom"}, {"error": {"message": "boom"}}])
def test_errors_in_the_stream_are_errors(chunk):
    with pytest.raises(StreamedError):
        assemble(delta(content="half"), chunk)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}},
        {"prompt_tokens": 10, "completion_tokens": 3, "prompt_cache_hit_tokens": 8},
    ],
)
def test_usage_of_several_servers(usage):
    for chunk in ({"choices": [], "usage": usage}, {"choices": [], "x_groq": {"usage": usage}}):
        used = assemble(delta("stop", content="hi"), chunk).usage
        assert used is not None
        assert (used.input_tokens, used.output_tokens, used.cached_tokens) == (10, 3, 8)


@given(json_like)
def test_no_chunk_breaks_the_assembly(chunk):
    try:
        answer = assemble(delta(content="x"), chunk, delta("stop"))
    except (CutStream, StreamedError):
        return
    assert isinstance(answer.message["content"], str | None)
    json.dumps(answer.message)
