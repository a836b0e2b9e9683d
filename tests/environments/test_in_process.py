"""The in-process policy: one growing record per session, whose logprobs are the trainer's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Any

import pytest

from environments.agent_loop import Limits
from environments.catalogue import load_environment
from environments.groups import evaluate, run_group
from environments.parsers.base import ParsedCall
from environments.parsers.families import FAMILIES
from environments.policies.base import Completion, FinishReason, Sampling, TokenRecord
from environments.policies.engine import Engine, Request, Sampled
from environments.policies.in_process import InProcessPolicy
from environments.policies.renderers import ChatTemplateRenderer, TinyRenderer
from environments.word_problems import WARM_START_STREAM
from rl_cli.core.messages import tool_result, user
from tests.environments.tiny import PAD, chat_tokenizer, tiny_llama

pytestmark = pytest.mark.train
ADD = [{"type": "function", "function": {"name": "add", "parameters": {}}}]


def recomputed(model: Any, record: TokenRecord, temperature: float) -> list[float]:
    """Logprobs of all completion tokens by one forward over the whole sequence, as a trainer does it."""
    import torch

    ids = torch.tensor([[*record.prompt_ids, *record.completion_ids]])
    with torch.no_grad():
        logits = model(ids).logits[0, len(record.prompt_ids) - 1 : -1] / temperature
    return (
        torch.log_softmax(logits, -1).gather(-1, torch.tensor(record.completion_ids)[:, None])[:, 0].tolist()
    )


def largest_difference(model: Any, record: TokenRecord, temperature: float) -> float:
    full = recomputed(model, record, temperature)
    rows = zip(full, record.logprobs, record.mask, strict=True)
    return max(abs(a - b) for a, b, sampled in rows if sampled)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_several_turns_are_one_sequence_with_the_trainers_logprobs(temperature: float) -> None:
    model, tokenizer = tiny_llama(vocabulary=262), chat_tokenizer()
    policy = InProcessPolicy(Engine(model, PAD), ChatTemplateRenderer(tokenizer))

    async def conversation(number: int) -> tuple[TokenRecord, list[str]]:
        said = []
        async with policy.open("r", [], Sampling(temperature=temperature, max_tokens=12)) as session:
            for turn in range(3):
                before = list(session.record.completion_ids)
                completion = await session.complete([user(f"question {number} {'x' * number} {turn}")])
                said.append(completion.message["content"] or "")
                record = completion.tokens
                assert record is session.record
                assert record.completion_ids[: len(before)] == before  # what stood is kept as it was
        return session.record, said

    async def main() -> list[tuple[TokenRecord, list[str]]]:
        return await asyncio.gather(*map(conversation, range(6)))

    for record, _ in asyncio.run(main()):
        assert len(record.mask) == len(record.logprobs) == len(record.completion_ids)
        assert largest_difference(model, record, temperature) < 1e-4
        assert all(p == 0 for p, sampled in zip(record.logprobs, record.mask, strict=True) if not sampled)
        text = tokenizer.decode([*record.prompt_ids, *record.completion_ids])
        assert text.count("<|im_start|>user\nquestion") == 3


def test_a_full_context_ends_the_session_without_a_token() -> None:
    tokenizer = chat_tokenizer()
    engine = Engine(tiny_llama(vocabulary=262), PAD, context_length=80)
    policy = InProcessPolicy(engine, ChatTemplateRenderer(tokenizer))

    async def main() -> None:
        async with policy.open("r", [], Sampling(max_tokens=8)) as session:
            await session.complete([user("a")])
            before = list(session.record.completion_ids)
            completion = await session.complete([user("b" * 60)])
            assert completion.finish_reason is FinishReason.LENGTH
            assert session.record.completion_ids == before

    asyncio.run(main())


class Playing(Engine):
    """Samples what it was given, turn after turn."""

    def __init__(self, turns: list[list[int]]) -> None:
        super().__init__(None, PAD, context_length=4096)
        self._turns = iter(turns)

    def continue_all(self, requests: Sequence[Request]) -> list[Sampled]:
        turns = [next(self._turns) for _ in requests]
        return [Sampled(ids, [0.0] * len(ids), FinishReason.STOP) for ids in turns]


@pytest.mark.parametrize("family", ["kimi_k2", "hermes"])
def test_calls_keep_their_own_ids_and_none_is_used_twice(family: str) -> None:
    tokenizer = chat_tokenizer()
    calls = [ParsedCall("add", "{}"), ParsedCall("add", '{"a": 1}')]
    turn = tokenizer.encode(FAMILIES[family].render(calls), add_special_tokens=False)
    policy = InProcessPolicy(Playing([turn, turn]), ChatTemplateRenderer(tokenizer, FAMILIES[family]))

    async def main() -> list[str]:
        async with policy.open("r", ADD, Sampling()) as session:
            first = (await session.complete([user("hi")])).message["tool_calls"]
            second = await session.complete([tool_result(call, "1") for call in first])
            return [call["id"] for call in [*first, *second.message["tool_calls"]]]

    ids = asyncio.run(main())
    assert len(set(ids)) == 4
    own = ["functions.add:0", "functions.add:1"]
    assert (ids[:2] == own) == (family == "kimi_k2")


def test_a_broken_call_beside_a_good_one_is_told_with_its_place_and_the_good_one_is_made() -> None:
    tokenizer = chat_tokenizer()
    text = 'Now <tool_call>{"name": }</tool_call><tool_call>{"name": "add", "arguments": {}}</tool_call>'
    turn = tokenizer.encode(text, add_special_tokens=False)
    policy = InProcessPolicy(Playing([turn]), ChatTemplateRenderer(tokenizer))

    async def main() -> Completion:
        async with policy.open("r", ADD, Sampling()) as session:
            return await session.complete([user("hi")])

    done = asyncio.run(main())
    assert [call["function"]["name"] for call in done.message["tool_calls"]] == ["add"]
    assert done.finish_reason is FinishReason.TOOL_CALLS
    assert done.message["content"] == 'Now <tool_call>{"name": }</tool_call>'
    assert [error.partition(":")[0] for error in done.call_errors] == ["at character 4"]


def test_top_p_is_refused() -> None:
    policy = InProcessPolicy(Engine(tiny_llama(), PAD), ChatTemplateRenderer(chat_tokenizer()))

    async def main() -> None:
        async with policy.open("r", [], Sampling(top_p=0.9)):
            pass

    with pytest.raises(ValueError, match="top_p"):
        asyncio.run(main())


@pytest.fixture(scope="module")
def learnt() -> tuple[Any, Any, list[Any]]:
    """A tiny model that knows the worked solutions of two tool-math problems by heart, and their tasks."""
    import torch

    from rl_cli.training.tiny_model import TinyConfig, build_model, build_tokenizer

    torch.set_num_threads(1)
    env = load_environment("tool-math")
    rows = {}
    for row in islice(env.warm_start(0, 200) or [], 200):
        if sum(segment.trained for segment in row) == 3:  # both steps: no shortcut
            rows.setdefault(row[0].text, row)
    chosen = list(rows.values())[:2]
    tokenizer = build_tokenizer(segment.text for row in rows.values() for segment in row)
    model = build_model(TinyConfig(), seed=0)
    encoded = [
        [(i, s.trained) for s in row for i in tokenizer.encode(s.text, add_special_tokens=False)]
        + [(tokenizer.eos_token_id, True)]
        for row in chosen
    ]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(40):
        for pairs in encoded:
            ids = torch.tensor([[i for i, _ in pairs]])
            labels = torch.tensor([[i if trained else -100 for i, trained in pairs]])
            model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    wanted = {row[0].text for row in chosen}
    tasks = [t for t in islice(env.tasks("train", WARM_START_STREAM), 200) if t.data["question"] in wanted]
    return model, tokenizer, tasks


def policy_of(learnt: tuple[Any, Any, list[Any]]) -> InProcessPolicy:
    model, tokenizer, _ = learnt
    return InProcessPolicy(Engine(model, tokenizer.pad_token_id), TinyRenderer(tokenizer))


def test_the_tiny_model_calls_the_calculator_and_goes_on(learnt: Any) -> None:
    model, tokenizer, tasks = learnt
    env, policy = load_environment("tool-math"), policy_of(learnt)
    sampling = Sampling(temperature=0.0, max_tokens=20)
    evaluation = asyncio.run(evaluate(env, tasks, policy, sampling, Limits(max_turns=4)))
    assert (evaluation.accuracy, evaluation.errors) == (1.0, {})
    assert policy.engine.batches == 3
    for rollout in evaluation.rollouts:
        result = rollout.result
        assert result is not None
        assert [call.name for call in result.calls] == ["calculator", "calculator"]
        assert all(call.ok for call in result.calls)
        record = result.tokens
        assert record is not None
        inserted = tokenizer.decode(
            [i for i, m in zip(record.completion_ids, record.mask, strict=True) if not m]
        )
        assert len(inserted.split()) == 2
        text = tokenizer.decode(record.completion_ids)
        assert text.count("</call>") == 2
        assert text.endswith(f" #### {rollout.task.data['answer']}<eos>")
        assert largest_difference(model, record, 1.0) < 1e-4


def test_a_group_samples_and_is_restored_by_torchs_random_state(learnt: Any) -> None:
    import torch

    env, (_, _, tasks) = load_environment("tool-math"), learnt

    def sampled() -> list[TokenRecord]:
        torch.manual_seed(4)
        sampling = Sampling(temperature=3.0, max_tokens=20)
        group = asyncio.run(run_group(env, tasks[0], policy_of(learnt), 8, sampling, Limits(max_turns=4)))
        assert group.errors_by_kind() == {}
        return [r.result.tokens for r in group.rollouts if r.result and r.result.tokens]

    first = sampled()
    assert len({tuple(record.completion_ids) for record in first}) > 1
    assert sampled() == first
    model = learnt[0]
    assert max(largest_difference(model, record, 3.0) for record in first) < 1e-4
