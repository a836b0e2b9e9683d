"""What servers leave in the text of their answers, read through the real policies against the wire server."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from environments.agent_loop import StopReason
from environments.parsers.base import ParsedCall
from environments.parsers.families import FAMILIES, parser_for
from environments.policies.anthropic.messages import AnthropicPolicy
from environments.policies.base import Completion, FinishReason, ReasoningDelta, Sampling, TextDelta
from environments.policies.endpoints.endpoint import Endpoint
from rl_cli.core.messages import assistant, tool_call, tool_result, user
from tests.environments.openai_talk import TOOLS, ran, run_loop, say, talk
from tests.wire.server import Call, Reply, WireServer

MODELS = [
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-Coder-30B-A3B-Instruct",
    "mistralai/Devstral-Small-2507",
    "deepseek-ai/DeepSeek-V3.1",
    "moonshotai/Kimi-K2-Instruct",
    "zai-org/GLM-4.6",
    "MiniMaxAI/MiniMax-M2",
    "meta-llama/Llama-3.3-70B-Instruct",
    "openai/gpt-oss-20b",
    "google/gemma-4-31b-it",
]
HERMES = '<tool_call>\n{"name": "note_down", "arguments": {"text": "a"}}\n</tool_call>'


def answer(text: str, **settings: Any) -> tuple[Completion, str]:
    """The completion, and what was shown of its text."""
    shown: list[Any] = []
    with WireServer([Reply(text=text, finish="stop", piece=3)]) as server:
        done: Completion = say(server, on_delta=shown.append, **settings)
    return done, "".join(delta.text for delta in shown if isinstance(delta, TextDelta))


def calls_of(done: Completion) -> list[tuple[str, Any]]:
    functions = [call["function"] for call in done.message.get("tool_calls", [])]
    return [(function["name"], json.loads(function["arguments"])) for function in functions]


@pytest.mark.parametrize("model", MODELS)
def test_calls_in_the_form_of_the_models_family_are_run_and_not_shown(model: str) -> None:
    family = parser_for(model)
    assert family
    written = family.render([ParsedCall("note_down", '{"text": "a < b"}'), ParsedCall("note_down", "{}")])
    shown: list[Any] = []
    with WireServer([Reply(text=f"I note.\n{written}", finish="stop", piece=4), Reply(text="ok")]) as server:
        result = run_loop(server, model=model, on_delta=shown.append)
    assert (result.stop, ran, result.call_errors) == (StopReason.FINISHED, ["a < b", "nothing"], [])
    assert result.messages[1]["content"] == "I note."
    assert "".join(d.text for d in shown if isinstance(d, TextDelta)) == "I note.ok"


def test_a_model_of_no_known_family_is_read_like_hermes() -> None:
    done, shown = answer(f"I note.\n{HERMES}", model="my-fine-tune")
    assert (calls_of(done), shown) == ([("note_down", {"text": "a"})], "I note.")


@pytest.mark.parametrize("model", MODELS)
def test_thinking_in_tags_is_thinking_whatever_the_model(model: str) -> None:
    for tools in (TOOLS, []):
        done, shown = answer("<think>\nhm\n</think>\n\nYes.", model=model, tools=tools)
        assert (done.message["reasoning"], done.message["content"], shown) == ("hm", "Yes.", "Yes.")


def test_without_tools_calls_stay_text_to_the_letter_and_are_shown() -> None:
    text = f"  So:\n{HERMES}\n"
    for model in ("hermes-3", "mistral-small"):
        done, shown = answer(text, model=model, tools=[])
        assert (calls_of(done), done.message["content"], shown) == ([], text, text.strip())
        assert done.call_errors == []


@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", "mistralai/Devstral-Small-2507", "my-fine-tune"])
def test_content_that_is_nothing_but_calls_is_calls(model: str) -> None:
    bare = '{"name": "note_down", "arguments": {"text": "a"}}'
    for text in (bare, f"```json\n{bare}\n```", f"<think>hm</think>\n{bare}"):
        done, _ = answer(text, model=model)
        assert (calls_of(done), done.message["content"]) == ([("note_down", {"text": "a"})], None)
    done, shown = answer(f"Send {bare} to note it.", model=model)
    assert (calls_of(done), done.message["content"], shown) == ([], f"Send {bare} to note it.", shown)


def test_a_broken_call_is_told_with_its_place_and_stays_in_the_text() -> None:
    text = 'I note: <tool_call>{"name": "note_down", "arguments": {"text": }}</tool_call>'
    done, shown = answer(text)
    assert (calls_of(done), done.message["content"], shown) == ([], text, text)
    assert len(done.call_errors) == 1
    assert re.match(r"at character 8: .*JSON", done.call_errors[0])
    assert done.finish_reason is FinishReason.STOP


def test_a_mark_that_is_only_spoken_of_is_no_error() -> None:
    text = "Calls stand between `<tool_call>` and `</tool_call>`."
    done, shown = answer(text)
    assert (done.message["content"], shown, done.call_errors) == (text, text, [])


def test_text_around_good_calls_and_a_mention_do_not_stop_a_turn() -> None:
    text = f"With '<tool_call>' I note:\n{HERMES}\nand <tool_call> again:\n{HERMES}\nDone."
    with WireServer([Reply(text=text, finish="stop"), Reply(text="ok")]) as server:
        result = run_loop(server)
    assert (result.stop, ran) == (StopReason.FINISHED, ["a", "a"])
    said = result.messages[1]["content"] or ""
    assert all(words in said for words in ("With '<tool_call>' I note:", "and <tool_call> again:", "Done."))
    assert len(result.call_errors) == 1


def test_agt_26_calls_in_the_thinking_are_not_run() -> None:
    draft = HERMES.replace('"a"', '"draft"')
    with WireServer([Reply(text=f"<think>I will {draft}</think>{HERMES}"), Reply(text="ok")]) as server:
        result = run_loop(server)
    assert (ran, result.messages[1]["reasoning"]) == (["a"], f"I will {draft}")
    with WireServer([Reply(text=f"<think>I will {draft}")]) as server:
        assert (run_loop(server).messages[1].get("tool_calls"), ran) == (None, [])


def test_agt_27_a_value_of_the_wrong_type_is_kept_and_the_model_is_told() -> None:
    family = FAMILIES["qwen3_coder"]
    call = family.render([ParsedCall("note_down", '{"text": "a", "day": "2026-01-15"}')])
    with WireServer([Reply(text=call), Reply(text="ok")]) as server:
        result = run_loop(server, model="qwen3-coder")
    (record,) = result.calls
    assert json.loads(record.arguments) == {"text": "a", "day": "2026-01-15"}
    assert (record.error_type, "day" in record.result) == ("invalid_arguments", True)


@pytest.mark.parametrize("model", ["qwen3-coder", "hermes-3", "glm-4.5", "minimax-m2"])
def test_agt_28_a_closing_tag_in_a_value_reaches_the_tool(model: str) -> None:
    family = parser_for(model)
    assert family
    closers = {"qwen3-coder": "</parameter>", "glm-4.5": "</arg_value>", "minimax-m2": "</parameter>"}
    value = f"grep -c '{closers.get(model, '</tool_call>')}' build.log"
    with WireServer(
        [
            Reply(text=family.render([ParsedCall("note_down", json.dumps({"text": value}))])),
            Reply(text="ok"),
        ]
    ) as server:
        run_loop(server, model=model)
    assert ran == [value]


def test_reasoning_in_a_field_and_in_tags_is_said_once() -> None:
    for thought, reasoning in (("hm", "hm"), ("well", "well\n\nhm")):
        with WireServer([Reply(text="<think>hm</think>Yes.", reasoning=thought)]) as server:
            message = say(server).message
        assert (message["reasoning"], message["content"]) == (reasoning, "Yes.")


def test_reasoning_that_the_prompt_has_opened_is_shown_as_reasoning_once_it_is_known() -> None:
    shown: list[Any] = []
    with WireServer([Reply(text="hm, so\n</think>\n\nYes.", piece=2)]) as server:
        message = say(server, on_delta=shown.append).message
    assert (message["reasoning"], message["content"]) == ("hm, so", "Yes.")
    assert "".join(d.text for d in shown if isinstance(d, ReasoningDelta)) == "hm, so"


def test_calls_beside_the_text_count_and_those_in_it_stay_there() -> None:
    with WireServer([Reply(text=HERMES, calls=[Call("note_down", {"text": "b"})]), Reply("ok")]) as server:
        result = run_loop(server)
    assert (ran, result.messages[1]["content"]) == (["b"], HERMES)


@pytest.mark.parametrize("model", ["moonshotai/Kimi-K2-Instruct", "mistralai/Devstral-Small-2507"])
def test_ids_are_the_models_own_or_such_as_every_template_takes_and_never_used_twice(model: str) -> None:
    family = parser_for(model)
    assert family
    text = family.render([ParsedCall("note_down", "{}"), ParsedCall("note_down", '{"text": "b"}')])
    before = [user("hi"), assistant(None, [tool_call("call00002", "note_down", "{}")])]
    before.append(tool_result(before[1]["tool_calls"][0], "1"))

    async def conversation(session: Any) -> list[str]:
        first = await session.complete(before)
        calls = first.message["tool_calls"]
        second = await session.complete([tool_result(call, "1") for call in calls])
        return [call["id"] for call in [*calls, *second.message["tool_calls"]]]

    with WireServer([Reply(text=text), Reply(text=text)]) as server:
        ids = talk(server, conversation, model=model)
        assert server.violations == []
    assert len({*ids, "call00002"}) == 5
    own = ids[:2] if "Kimi" in model else []
    assert own == (["functions.note_down:0", "functions.note_down:1"] if "Kimi" in model else [])
    assert all(re.fullmatch("[a-z0-9]{9}", call_id) for call_id in ids[len(own) :])


@pytest.mark.parametrize("model", MODELS)
def test_servers_of_anthropics_form_leave_the_same(model: str) -> None:
    import asyncio

    family = parser_for(model)
    assert family
    written = family.render([ParsedCall("note_down", '{"text": "a"}')])
    shown: list[Any] = []

    async def main(server: WireServer) -> Completion:
        policy = AnthropicPolicy(Endpoint("gateway", model, server.anthropic_url, "k"))
        async with policy.open("r", TOOLS, Sampling(), shown.append) as session:
            return await session.complete([user("hi")])

    with WireServer([Reply(text=f"<think>hm</think>I note.\n{written}", piece=3)]) as server:
        done = asyncio.run(main(server))
    assert (done.message["reasoning"], done.message["content"]) == ("hm", "I note.")
    assert (calls_of(done), done.finish_reason) == ([("note_down", {"text": "a"})], FinishReason.TOOL_CALLS)
    assert "".join(d.text for d in shown if isinstance(d, TextDelta)) == "I note."
