"""The wire server as the real SDKs see it: whole answers, faults, scripts."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import anthropic
import openai
import pytest

from tests.wire import refusals
from tests.wire.script import play
from tests.wire.server import Call, Fault, Raw, Reply, Tokens, WireServer

HI: list[Any] = [{"role": "user", "content": "hi"}]
SCRIPT = """
- when: {contains: train}
  text: I look.
  tool_calls:
    - {name: list_things}
    - {name: show, arguments: {n: 2}}
- when: {last_tool: show, ok: true}
  text: "{{ list_things.things.0 }} and {{ show.n }}."
- when: {contains: more}
  text: That is all.
"""


def chat(server: WireServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.openai_url, api_key="k", max_retries=0)


def claude(server: WireServer) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.anthropic_url, api_key="k", max_retries=0)


def test_a_streamed_chat_completion_is_what_openai_sends():
    reply = Reply("Grüße", [Call("f", {"a": "ü"}), Call("g")], usage=Tokens(100, 20, cached=64))
    with WireServer([reply]) as server:
        tools: Any = [{"type": "function", "function": {"name": "f"}}]
        chunks = list(
            chat(server).chat.completions.create(
                model="m", messages=HI, tools=tools, stream=True, stream_options={"include_usage": True}
            )
        )
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1
    assert all(chunk.id.startswith("chatcmpl-") for chunk in chunks)
    *deltas, finish, usage = chunks
    assert [c.choices[0].delta.role for c in deltas] == ["assistant", *[None] * (len(deltas) - 1)]
    assert "".join(c.choices[0].delta.content or "" for c in deltas) == "Grüße"
    calls = [call for c in deltas for call in c.choices[0].delta.tool_calls or []]
    heads = [call for call in calls if call.id]
    assert [(call.index, call.type, call.function and call.function.name) for call in heads] == [
        (0, "function", "f"),
        (1, "function", "g"),
    ]
    text = "".join(call.function.arguments or "" for call in calls if call.index == 0 and call.function)
    assert json.loads(text) == {"a": "ü"}
    assert finish.choices[0].finish_reason == "tool_calls"
    assert usage.choices == []
    assert usage.usage
    assert usage.usage.prompt_tokens_details
    assert usage.usage.prompt_tokens_details.cached_tokens == 64
    assert server.violations == []


def test_without_being_asked_for_there_is_no_usage_in_a_stream():
    with WireServer([Reply("x")]) as server:
        chunks = list(chat(server).chat.completions.create(model="m", messages=HI, stream=True))
    assert [chunk.usage for chunk in chunks] == [None] * len(chunks)


def test_a_streamed_message_is_what_anthropic_sends():
    reply = Reply("Grüße", [Call("f", {"a": 1})], reasoning="hm, so", usage=Tokens(100, 20, 64, 6))
    with (
        WireServer([reply]) as server,
        claude(server).messages.stream(model="m", max_tokens=9, messages=HI) as stream,
    ):
        message = stream.get_final_message()
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.content[2].type == "tool_use"
    assert message.content[2].input == {"a": 1}
    assert message.stop_reason == "tool_use"
    used = message.usage
    assert (used.input_tokens, used.cache_read_input_tokens, used.output_tokens) == (30, 64, 20)
    assert server.violations == []


def test_both_answer_whole_where_no_stream_is_asked_for():
    with WireServer([Reply("one", [Call("f", {"a": 1})], reasoning="hm")] * 2) as server:
        completion = chat(server).chat.completions.create(model="m", messages=HI)
        message = claude(server).messages.create(model="m", max_tokens=9, messages=HI)
    assert completion.choices[0].message.content == "one"
    assert completion.choices[0].message.model_extra == {"reasoning_content": "hm"}
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]


def test_messages_read_from_the_cache_what_an_earlier_request_marked():
    mark = {"type": "ephemeral"}

    def say(text: str, **more: Any) -> Any:
        return {"type": "text", "text": text, **more}

    with WireServer([Reply("one")] * 3) as server:
        client = claude(server)
        turns: list[Any] = [{"role": "user", "content": [say("a" * 4000, cache_control=mark)]}]
        first = client.messages.create(model="m", max_tokens=9, messages=turns).usage
        turns[0]["content"][0].pop("cache_control")
        turns += [{"role": "assistant", "content": "one"}]
        turns += [{"role": "user", "content": [say("b" * 4000, cache_control=mark)]}]
        second = client.messages.create(model="m", max_tokens=9, messages=turns).usage
        unmarked = client.messages.create(model="m", max_tokens=9, messages=HI).usage
    assert (first.cache_read_input_tokens, unmarked.cache_read_input_tokens) == (0, 0)
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens
    assert second.cache_creation_input_tokens
    assert second.input_tokens < 20


def test_chat_completions_cache_common_beginnings_by_themselves():
    with WireServer([Reply("one")] * 2) as server:
        used = []
        for last in ("x", "y"):
            messages: Any = [{"role": "user", "content": "a" * 8000 + last}]
            used.append(chat(server).chat.completions.create(model="m", messages=messages).usage)
    cached = [u.prompt_tokens_details.cached_tokens for u in used if u and u.prompt_tokens_details]
    assert cached == [0, 1920]


def test_errors_come_as_the_sdks_know_them():
    with WireServer([refusals.openai_rate_limit("3"), refusals.anthropic_overloaded()]) as server:
        with pytest.raises(openai.RateLimitError) as limited:
            chat(server).chat.completions.create(model="m", messages=HI)
        with pytest.raises(anthropic.InternalServerError) as busy:
            claude(server).messages.create(model="m", max_tokens=9, messages=HI)
    assert limited.value.code == "rate_limit_exceeded"
    assert limited.value.response.headers["retry-after"] == "3"
    assert str(limited.value.request_id).startswith("req_")
    assert busy.value.status_code == 529
    assert str(busy.value.request_id).startswith("req_")


@pytest.mark.parametrize("kind", ["cut", "reset"])
@pytest.mark.parametrize("after", [None, 3])
def test_a_broken_connection_breaks_off_the_stream(kind: Any, after: int | None):
    with WireServer([Reply("some longer text", fault=Fault(kind, after))]) as server:
        got, error = streamed(server)
    assert isinstance(error, openai.APIConnectionError)
    assert "some longer ".startswith(got)


def test_a_stream_may_end_early_without_an_error():
    with WireServer([Reply("some longer text", fault=Fault("end", -3))]) as server:
        assert streamed(server) == ("some longer ", None)


def streamed(server: WireServer) -> tuple[str, Exception | None]:
    """The text that came, and the error that ended it."""
    got = ""
    try:
        for chunk in chat(server).chat.completions.create(model="m", messages=HI, stream=True):
            got += chunk.choices[0].delta.content or ""
    except openai.APIError as error:
        return got, error
    return got, None


def test_a_hanging_stream_hangs_until_the_client_goes():
    with WireServer([Reply("some longer text", fault=Fault("hang", 2))]) as server:
        client = chat(server).with_options(timeout=0.3)
        with pytest.raises(openai.APITimeoutError):
            list(client.chat.completions.create(model="m", messages=HI, stream=True))
        while not server.requests[0].gone:
            time.sleep(0.01)


def test_an_error_event_in_the_stream():
    fault = Fault("error", 2, refusals.anthropic_overloaded())
    with (
        WireServer([Reply("some longer text", fault=fault)]) as server,
        claude(server).messages.stream(model="m", max_tokens=9, messages=HI) as stream,
        pytest.raises(anthropic.APIStatusError, match="Overloaded"),
    ):
        stream.get_final_message()


def test_bytes_as_they_are_in_small_writes():
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunk["choices"] = [{"index": 0, "delta": {"content": "日本"}, "finish_reason": "stop"}]
    body = f"\ufeffdata: {json.dumps(chunk, ensure_ascii=False)}\r\n\r\n: keep-alive\r\n\r\n".encode()
    with WireServer([Raw(body[3:], write_size=1)]) as server:
        [got] = list(chat(server).chat.completions.create(model="m", messages=HI, stream=True))
    assert got.choices[0].delta.content == "日本"


def test_speed_is_kept():
    with WireServer([Reply("a" * 10, piece=1)], tokens_per_second=100) as server:
        started = time.monotonic()
        list(chat(server).chat.completions.create(model="m", messages=HI, stream=True))
    assert time.monotonic() - started > 0.1


def test_gates_are_no_violations():
    with WireServer([Reply("x")], key="right", models=["m"], alternate=True) as server:
        with pytest.raises(openai.AuthenticationError):
            chat(server).chat.completions.create(model="m", messages=HI)
        client = chat(server).with_options(api_key="right")
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="other", messages=HI)
        with pytest.raises(openai.BadRequestError, match="alternate"):
            client.chat.completions.create(model="m", messages=HI * 2)
        assert [model.id for model in client.models.list()] == ["m"]
    assert server.violations == []


def test_a_script_runs_out_loudly():
    with WireServer() as server, pytest.raises(openai.BadRequestError, match="no answer left"):
        chat(server).chat.completions.create(model="m", messages=HI)
    assert server.violations == ["request 0: the script has no answer left"]


def test_the_yaml_script_is_played_over_both(tmp_path: Path):
    file = tmp_path / "script.yaml"
    file.write_text(SCRIPT)
    results = {"list_things": '{"ok": true, "things": ["apple"]}', "show": '{"ok": true, "n": 7}'}
    with WireServer(play(file)) as server:
        messages: list[Any] = [{"role": "user", "content": "train it"}]
        first = chat(server).chat.completions.create(model="m", messages=messages).choices[0].message
        messages.append(first.model_dump(exclude_none=True, exclude={"annotations"}))
        for call in first.tool_calls or []:
            assert call.type == "function"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": results[call.function.name]})
        answers = [chat(server).chat.completions.create(model="m", messages=messages) for _ in range(2)]
        assert [a.choices[0].message.content for a in answers] == ["apple and 7."] * 2

        tools: Any = [{"name": name, "input_schema": {"type": "object"}} for name in results]
        turns: list[Any] = [{"role": "user", "content": "train it"}]
        use = claude(server).messages.create(model="m", max_tokens=9, messages=turns, tools=tools)
        turns.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in use.content]})
        blocks = [
            {"type": "tool_result", "tool_use_id": block.id, "content": results[block.name]}
            for block in use.content
            if block.type == "tool_use"
        ]
        turns.append({"role": "user", "content": blocks})
        said = claude(server).messages.create(model="m", max_tokens=9, messages=turns, tools=tools)
        assert [block.text for block in said.content if block.type == "text"] == ["apple and 7."]
    assert server.violations == []


def test_it_runs_as_a_program(tmp_path: Path):
    file = tmp_path / "script.yaml"
    file.write_text("- {text: hello}")
    words = [sys.executable, "-m", "tests.wire.server", "--script", str(file)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        root = process.stdout.readline().strip()
        client = openai.OpenAI(base_url=root + "/v1", api_key="k")
        assert client.chat.completions.create(model="m", messages=HI).choices[0].message.content == "hello"
        assert json.load(urlopen(root + "/state")) == {"requests": 1, "violations": []}
        process.terminate()
