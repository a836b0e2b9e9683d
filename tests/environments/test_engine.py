"""The engine: the same samples as Hugging Face's generate, batching that neither splits nor hangs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from environments.policies.base import FinishReason, PolicyError
from environments.policies.engine import Engine, Request, decode
from tests.environments.tiny import PAD, tiny_llama

pytestmark = pytest.mark.train
PROMPTS = [tuple(range(5, 5 + n)) for n in (3, 9, 6, 9)]
NEVER: frozenset[int] = frozenset()


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_llama()


def generate(model: Any, requests: list[Request], temperature: float) -> list[list[int]]:
    """The new tokens of Hugging Face's own generate, up to and with the stop token."""
    import torch

    width = max(len(r.ids) for r in requests)
    ids = torch.tensor([[PAD] * (width - len(r.ids)) + list(r.ids) for r in requests])
    stop = sorted(requests[0].stop_ids)
    sampling: dict[str, Any] = {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}
    out = model.generate(
        input_ids=ids,
        attention_mask=(torch.arange(width) >= torch.tensor([[width - len(r.ids)] for r in requests])).long(),
        max_new_tokens=requests[0].max_new_tokens,
        pad_token_id=PAD,
        eos_token_id=stop or None,
        **(sampling if temperature else {"do_sample": False}),
    )
    rows = [row[width:].tolist() for row in out]
    ends = [next((i + 1 for i, token in enumerate(row) if token in stop), len(row)) for row in rows]
    return [row[:end] for row, end in zip(rows, ends, strict=True)]


@pytest.mark.parametrize("temperature", [1.0, 0.7, 0.0])
def test_samples_are_those_of_generate(model: Any, temperature: float) -> None:
    import torch

    stop = frozenset(range(20, 60))  # rows end at different times, so that the batch shrinks
    requests = [Request(ids, 16, stop, temperature) for ids in PROMPTS for _ in range(8)]
    torch.manual_seed(3)
    ours = decode(model, requests, PAD)
    torch.manual_seed(3)
    assert [s.ids for s in ours] == generate(model, requests, temperature)
    lengths = {len(s.ids) for s in ours}
    assert temperature == 0 or len(lengths) > 3
    for sampled in ours:
        ended = sampled.ids[-1] in stop
        assert sampled.finish is (FinishReason.STOP if ended else FinishReason.LENGTH)
        assert len(sampled.logprobs) == len(sampled.ids)


@pytest.mark.parametrize("temperature", [1.0, 0.7, 0.0])
def test_logprobs_are_those_of_one_full_forward(model: Any, temperature: float) -> None:
    import torch

    requests = [Request(ids, 16, frozenset(range(20, 40)), temperature) for ids in PROMPTS for _ in range(4)]
    for request, sampled in zip(requests, decode(model, requests, PAD), strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([[*request.ids, *sampled.ids]])).logits[0, len(request.ids) - 1 : -1]
        full = torch.log_softmax(logits / (temperature or 1.0), -1)
        expected = full.gather(-1, torch.tensor(sampled.ids)[:, None])[:, 0]
        assert (expected - torch.tensor(sampled.logprobs)).abs().max() < 1e-4


def test_requests_of_one_batch_may_differ_in_everything(model: Any) -> None:
    requests = [
        Request(PROMPTS[0], 3, NEVER, 0.0),
        Request(PROMPTS[1], 7, NEVER, 1.0),
        Request(PROMPTS[0], 5, frozenset(range(250)), 1.0),
    ]
    short, long, stopped = decode(model, requests, PAD)
    assert (len(short.ids), len(long.ids)) == (3, 7)
    assert short.ids == decode(model, requests[:1], PAD)[0].ids
    assert stopped.finish is FinishReason.STOP


def test_mode_and_gradients_are_left_as_they_were(model: Any) -> None:
    import torch

    model.train()
    model.model.norm.eval()
    decode(model, [Request(PROMPTS[0], 2, NEVER)], PAD)
    assert model.training
    assert not model.model.norm.training
    assert torch.is_grad_enabled()
    model.eval()
    decode(model, [Request(PROMPTS[0], 2, NEVER)], PAD)
    assert not model.training


async def rollout(engine: Engine, turns: int, pause: float = 0.0, fail: bool = False) -> int:
    with engine.seat() as seat:
        await asyncio.sleep(0)
        for _ in range(turns):
            await engine.sample(seat, Request(PROMPTS[seat % 4], 2, NEVER))
            if fail:
                raise ValueError("a rollout's own failure")
            await asyncio.sleep(pause)
    return turns


def test_all_waiting_rollouts_share_one_batch_whenever_others_end_or_fail(model: Any) -> None:
    engine = Engine(model, PAD, flush_seconds=30)

    async def main() -> list[Any]:
        work = [rollout(engine, turns, fail=turns == 2) for turns in (1, 2, 3, 5, 1, 2)]
        return await asyncio.gather(*work, return_exceptions=True)

    results = asyncio.run(main())
    assert [r for r in results if isinstance(r, int)] == [1, 3, 5, 1]
    assert engine.batches == 5  # as many as the longest has turns
    asyncio.run(main())  # another event loop, as TRL starts one per step
    assert engine.batches == 10


def test_a_slow_tool_holds_the_others_no_longer_than_the_time_out(model: Any) -> None:
    engine = Engine(model, PAD, flush_seconds=0.05)

    async def main() -> None:
        slow = asyncio.create_task(rollout(engine, 2, pause=30))
        await asyncio.wait_for(asyncio.gather(*(rollout(engine, 3) for _ in range(4))), 20)
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)

    asyncio.run(main())
    assert not engine._seats


def test_cancelled_rollouts_free_the_batch(model: Any) -> None:
    engine = Engine(model, PAD, flush_seconds=30)

    async def main() -> list[int]:
        async def stuck() -> None:
            with engine.seat():
                await asyncio.Event().wait()

        task = asyncio.create_task(stuck())
        asyncio.get_running_loop().call_later(0.05, task.cancel)
        return await asyncio.wait_for(asyncio.gather(*(rollout(engine, 2) for _ in range(3))), 20)

    assert asyncio.run(main()) == [2, 2, 2]
    assert engine.batches == 2


def test_the_context_is_a_limit(model: Any) -> None:
    engine = Engine(model, PAD, context_length=12)

    async def sample(length: int) -> Any:
        with engine.seat() as seat:
            return await engine.sample(seat, Request(tuple(range(5, 5 + length)), 10, NEVER))

    cut = asyncio.run(sample(8))
    assert (len(cut.ids), cut.finish) == (4, FinishReason.LENGTH)
    full = asyncio.run(sample(12))
    assert (full.ids, full.finish) == ([], FinishReason.LENGTH)


def test_a_model_that_fails_is_a_policy_error_for_its_batch_only(model: Any) -> None:
    engine = Engine(model, PAD)

    async def bad() -> None:
        with engine.seat() as seat:
            await engine.sample(seat, Request((10**6,), 2, NEVER))

    with pytest.raises(PolicyError, match="the model failed: IndexError"):
        asyncio.run(bad())
    assert asyncio.run(rollout(engine, 1)) == 1


def test_the_order_of_rows_is_that_of_opening_not_of_asking(model: Any) -> None:
    import torch

    async def sampled(delays: list[float]) -> list[list[int]]:
        engine = Engine(model, PAD, flush_seconds=30)

        async def one(delay: float) -> list[int]:
            with engine.seat() as seat:
                await asyncio.sleep(delay)
                return (await engine.sample(seat, Request(PROMPTS[0], 8, NEVER))).ids

        return await asyncio.gather(*map(one, delays))

    torch.manual_seed(0)
    first = asyncio.run(sampled([0.0, 0.02, 0.04]))
    torch.manual_seed(0)
    assert asyncio.run(sampled([0.04, 0.02, 0.0])) == first
