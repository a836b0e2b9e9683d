"""Streams of the Messages API, Anthropic's and compatible servers', become the right messages."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.policies.anthropic.events import counted, events_of
from environments.policies.anthropic.stream import MessageBuilder
from environments.policies.base import Completion, Delta, FinishReason, ReasoningDelta, TextDelta, Usage
from environments.policies.endpoints.errors import CutStream, StreamedError

Event = dict[str, Any]


def start(index: Any, kind: str, **block: Any) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **block}}


def text(index: Any, piece: str) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": piece}}


def json_piece(index: Any, piece: Any) -> Event:
    delta = {"type": "input_json_delta", "partial_json": piece}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def think(index: Any, piece: str) -> Event:
    delta = {"type": "thinking_delta", "thinking": piece}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def sign(index: Any, piece: str) -> Event:
    delta = {"type": "signature_delta", "signature": piece}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def stop(index: Any) -> Event:
    return {"type": "content_block_stop", "index": index}


def end(reason: str | None = "end_turn", **usage: int) -> Event:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def call(index: Any, name: str, *pieces: Any, call_id: str | None = "toolu_1", **block: Any) -> list[Event]:
    begun = start(index, "tool_use", id=call_id, name=name, **({"input": {}} | block))
    return [begun, *(json_piece(index, piece) for piece in pieces), stop(index)]


def built(*events: Event, taken: tuple[str, ...] = ()) -> tuple[MessageBuilder, list[Delta]]:
    deltas: list[Delta] = []
    builder = MessageBuilder(deltas.append, taken)
    for event in events:
        builder.feed(event)
    return builder, deltas


def completion(*events: Event) -> Completion:
    builder, _ = built(*events)
    assert builder.complete
    return builder.completion()


def calls(done: Completion) -> list[tuple[str, str, str]]:
    found = done.message.get("tool_calls", [])
    return [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in found]


def test_text_thinking_and_calls_each_in_their_place() -> None:
    builder, deltas = built(
        {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
        start(0, "thinking", thinking="", signature=""),
        think(0, "Let me "),
        {"type": "ping"},
        think(0, "see."),
        sign(0, "c2ln"),
        stop(0),
        start(1, "redacted_thinking", data="ZGF0YQ=="),
        stop(1),
        start(2, "text", text=""),
        text(2, "I "),
        text(2, "look."),
        stop(2),
        *call(3, "look", "", '{"a": ', "1}"),
        end("tool_use", output_tokens=20),
        {"type": "message_stop"},
    )
    done = builder.completion()
    assert done.message["content"] == "I look."
    assert done.message["reasoning"] == "Let me see."
    assert calls(done) == [("toolu_1", "look", '{"a": 1}')]
    assert done.finish_reason is FinishReason.TOOL_CALLS
    assert (done.usage.input_tokens, done.usage.output_tokens) == (9, 20)
    assert deltas == [*map(ReasoningDelta, ["Let me ", "see."]), *map(TextDelta, ["I ", "look."])]
    assert done.message["provider_state"]["anthropic"]["content"] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_1"},
    ]


def test_agt_19_a_stop_reason_makes_a_message_complete_without_the_final_event() -> None:
    said = [start(0, "text", text=""), text(0, "done")]
    assert not built(*said)[0].complete
    assert not built(*said, stop(0))[0].complete
    assert built(*said, end("end_turn"))[0].complete
    assert built(*said, stop(0), end(None))[0].complete
    assert built(*said, {"type": "message_stop"})[0].complete
    assert not built(end(None))[0].complete
    assert completion(*said, end("end_turn")).message == {"role": "assistant", "content": "done"}


@pytest.mark.parametrize(
    ("reason", "with_calls", "without"),
    [
        ("end_turn", "tool_calls", "stop"),
        ("tool_use", "tool_calls", "stop"),
        ("stop_sequence", "tool_calls", "stop"),
        ("some_new_reason", "tool_calls", "stop"),
        ("tool_calls", "tool_calls", "stop"),
        ("max_tokens", "length", "length"),
        ("length", "length", "length"),
        ("model_context_window_exceeded", "length", "length"),
        ("pause_turn", "tool_calls", "length"),
        ("refusal", "content_filter", "content_filter"),
    ],
)
def test_the_content_decides_where_the_stop_reason_does_not(
    reason: str, with_calls: str, without: str
) -> None:
    said = [start(0, "text", text="x"), stop(0)]
    assert completion(*said, end(reason)).finish_reason == without
    assert completion(*said, *call(1, "look", "{}"), end(reason)).finish_reason == with_calls


@pytest.mark.parametrize(
    ("pieces", "block", "arguments"),
    [
        ([], {}, "{}"),
        ([""], {}, "{}"),
        ([None, " "], {}, "{}"),
        (["null"], {}, "{}"),
        (['{"a"', ": 1", "}"], {}, '{"a": 1}'),
        ([], {"input": {"a": 1}}, '{"a": 1}'),
        ([], {"input": '{"a": 1}'}, '{"a": 1}'),
        ([], {"input": None}, "{}"),
        (['{"a": 2}'], {"input": {"a": 1}}, '{"a": 2}'),
        ([{"a": 1}], {}, '{"a": 1}'),
        (["{'a': 1}"], {}, "{'a': 1}"),
        (["look at a"], {}, "look at a"),
    ],
)
def test_arguments_are_kept_as_the_model_wrote_them(pieces: list[Any], block: Event, arguments: str) -> None:
    assert calls(completion(*call(0, "look", *pieces, **block), end("tool_use"))) == [
        ("toolu_1", "look", arguments)
    ]


def test_a_call_that_the_token_limit_cut_is_left_out_and_told() -> None:
    whole = call(0, "look", '{"a": 1}')
    for pieces in ([], [""], ['{"a": "1'], ['{"a": {}']):
        done = completion(*whole, *call(1, "start", *pieces, call_id="toolu_2"), end("max_tokens"))
        assert calls(done) == [("toolu_1", "look", '{"a": 1}')]
        assert done.call_errors == ["the call of start was cut by the token limit"]
        assert done.finish_reason is FinishReason.LENGTH
    done = completion(*call(0, "look"), *call(1, "start", "{}", call_id="toolu_2"), end("max_tokens"))
    assert [name for _, name, _ in calls(done)] == ["look", "start"]


def test_the_last_call_of_an_unstreamed_answer_at_the_token_limit_may_be_cut() -> None:
    content = [{"type": "tool_use", "id": i, "name": i, "input": {"a": 1}} for i in "ab"]
    done = completion(*events_of({"content": content, "stop_reason": "max_tokens"}))
    assert [name for _, name, _ in calls(done)] == ["a"]
    done = completion(*events_of({"content": content, "stop_reason": "tool_use"}))
    assert [name for _, name, _ in calls(done)] == ["a", "b"]


def test_ids_that_are_missing_or_used_are_replaced_and_keep_their_order() -> None:
    builder, _ = built(
        *call(0, "a", "{}", call_id=None),
        *call(1, "b", "{}", call_id="same"),
        *call(2, "c", "{}", call_id="same"),
        *call(3, "d", "{}", call_id="old"),
        end("tool_use"),
        taken=("old", "call_2"),
    )
    found = calls(builder.completion())
    assert [name for _, name, _ in found] == ["a", "b", "c", "d"]
    assert len({i for i, _, _ in found} | {"old", "call_2"}) == 6
    assert found[1][0] == "same"


def test_a_call_without_a_name_cannot_be_made() -> None:
    done = completion(json_piece(0, '{"a": 1}'), *call(1, "look", "{}"), end("tool_use"))
    assert calls(done) == [("toolu_1", "look", "{}")]
    assert done.call_errors == ["a call came without the name of a tool"]


def test_one_index_for_all_blocks_and_no_index_at_all_lose_nothing() -> None:
    for index in (0, None, "0"):
        done = completion(
            start(index, "text", text="a"),
            text(index, "b"),
            stop(index),
            *call(index, "look", '{"a":', "1}"),
            *call(index, "start", '{"b":', "2}", call_id="toolu_2"),
            end("tool_use"),
        )
        assert done.message["content"] == "ab"
        assert [(n, a) for _, n, a in calls(done)] == [("look", '{"a":1}'), ("start", '{"b":2}')]


def test_pieces_without_the_start_of_their_block_are_kept() -> None:
    done = completion(think(0, "hm"), sign(0, "s"), text(1, "He"), text(1, "llo"), end())
    assert (done.message["content"], done.message["reasoning"]) == ("Hello", "hm")


def test_texts_with_something_between_them_do_not_run_together() -> None:
    done = completion(
        *(start(0, "text", text="I look."), *call(1, "look", "{}"), start(2, "text", text="Wait.")), end()
    )
    assert done.message["content"] == "I look.\n\nWait."
    assert completion(start(0, "text", text="Hel"), start(1, "text", text="lo"), end()).message[
        "content"
    ] == ("Hello")


def test_an_answer_of_nothing_is_a_message_of_nothing() -> None:
    done = completion(end("end_turn", output_tokens=2))
    assert done.message == {"role": "assistant", "content": None}
    assert done.finish_reason is FinishReason.STOP
    assert completion(*events_of({"content": "just text", "stop_reason": "end_turn"})).message["content"] == (
        "just text"
    )


def test_blocks_and_events_of_unknown_kinds_mean_nothing() -> None:
    done = completion(
        {"type": "vendor_event", "data": 1},
        start(0, "server_tool_use", id="s", name="web_search", input={}),
        json_piece(0, "{}"),
        start(1, "text", text="x"),
        {"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {}}},
        {"type": "content_block_delta", "index": 1, "delta": None},
        {"type": "content_block_stop"},
        end(),
    )
    assert done.message == {"role": "assistant", "content": "x"}


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        {"type": "error", "error": "busy"},
        {"error": {"message": "no more memory"}},
        next(events_of({"type": "error", "error": {"type": "api_error", "message": "x"}})),
    ],
)
def test_an_error_in_the_stream_is_an_error(event: Event) -> None:
    with pytest.raises(StreamedError) as raised:
        built(start(0, "text", text="x"), event)
    assert raised.value.body == event


def test_what_is_no_event_cuts_the_stream() -> None:
    for odd in (None, [], "x", 3):
        with pytest.raises(CutStream):
            MessageBuilder().feed(odd)


def test_later_counts_replace_earlier_ones() -> None:
    first = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 5}
    usage = counted(None, first | {"output_tokens": 1})
    assert usage == Usage(115, 1, 100, 5, requests=1)
    assert counted(usage, {"output_tokens": 50, "input_tokens": None}) == Usage(115, 50, 100, 5, requests=1)
    assert counted(usage, {"input_tokens": 12}) == Usage(117, 1, 100, 5, requests=1)
    assert counted(usage, None) == usage
    assert counted(None, {"service_tier": "standard"}) is None


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[list[Event]], list[tuple[str, str]], str]:
    """Events per block (each in order), and what they say."""
    blocks, made, content = [], [], ""
    for index in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            said = draw(st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=3))
            written = json.dumps(said, ensure_ascii=draw(st.booleans()))
            cuts = sorted(draw(st.lists(st.integers(0, len(written)), max_size=4)))
            pieces = [written[a:b] for a, b in itertools.pairwise([0, *cuts, len(written)])]
            blocks.append(call(index, f"tool{index}", *pieces, call_id=f"id{index}"))
            made.append((f"tool{index}", written))
        else:
            words = draw(st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=3))
            blocks.append([start(index, "text", text=""), *(text(index, w) for w in words), stop(index)])
            content += "".join(words)
    return blocks, made, content


@given(streams(), st.randoms(use_true_random=False))
def test_blocks_may_be_interleaved_and_cut_anywhere(
    stream: tuple[list[list[Event]], list[tuple[str, str]], str], random: Any
) -> None:
    blocks, made, content = stream
    left = [list(block) for block in blocks]
    order = [block.pop(0) for block in left]  # the blocks begin in order; the rest comes as it comes
    while any(left):
        order.append(random.choice([block for block in left if block]).pop(0))
    done = completion(*order, end())
    assert [(name, arguments) for _, name, arguments in calls(done)] == made
    assert (done.message["content"] or "").replace("\n\n", "") == content.replace("\n\n", "")
    assert done.finish_reason == ("tool_calls" if made else "stop")


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
kinds = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta"]
)
inner_kinds = st.sampled_from(["text", "tool_use", "thinking", "text_delta", "input_json_delta", "x"])


@given(
    st.lists(
        st.builds(
            lambda kind, index, inner, a, b: {
                "type": kind,
                "index": index,
                "content_block": {"type": inner, "text": a, "name": b, "input": a},
                "delta": {"type": inner, "text": a, "partial_json": b, "stop_reason": None},
                "usage": a,
                "message": b,
            },
            kinds,
            junk,
            inner_kinds,
            junk,
            junk,
        ),
        max_size=8,
    )
)
def test_whatever_a_server_sends_becomes_a_message(events: list[Event]) -> None:
    builder, _ = built(*events)
    done = builder.completion()
    json.dumps(done.message)
    assert all(isinstance(part, str) and name for part, name, _ in calls(done))
