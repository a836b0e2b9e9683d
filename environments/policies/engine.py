"""Sampling from a causal language model in this process: one batched decode loop, and who waits for it.

`decode` is plain: left-padded prompts, identical ones computed once, a key/value cache, rows dropped as they
end. `Engine` collects the requests of all open sessions and decodes when every one of them waits.

Sampling uses torch's global random generator, one draw per row and step in the order of the sessions'
opening, so that restoring torch's state restores the samples. Not covered: top-p, models split over
processes, autocast (the weights' own precision is used). Needs the `train` extra (transformers 5.24 or
later).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from environments.policies.base import FinishReason, PolicyError

COMPACT_BELOW = 0.75
"""Ended rows leave the batch when less than this share of it is left: moving the cache costs, too."""


@dataclass(frozen=True)
class Request:
    """One prompt to continue."""

    ids: tuple[int, ...]
    max_new_tokens: int
    stop_ids: frozenset[int]
    """Sampling one of these ends the completion; it is part of it."""
    temperature: float = 1.0
    """0 is greedy."""


@dataclass
class Sampled:
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    """Natural, of the full vocabulary, of logits / temperature (of the plain logits where greedy)."""
    finish: FinishReason = FinishReason.LENGTH
    """STOP after a stop id, else LENGTH."""


def decode(model: Any, requests: Sequence[Request], pad_id: int) -> list[Sampled]:
    """Continues every prompt; one `Sampled` per request, in order. The model's train or eval mode is kept.

    Shapes in names: U unique prompts, N requests, R rows still in the batch, V vocabulary.
    """
    import torch

    sampled = [Sampled() for _ in requests]
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            _decode(model, requests, sampled, pad_id)
    finally:
        for module, training in modes:
            module.training = training
    return sampled


def _decode(model: Any, requests: Sequence[Request], sampled: list[Sampled], pad_id: int) -> None:
    import torch
    from transformers import DynamicCache

    unique = {ids: row for row, ids in enumerate(dict.fromkeys(request.ids for request in requests))}
    width, device = max(map(len, unique)), model.device
    ids_UT = torch.tensor([[pad_id] * (width - len(ids)) + list(ids) for ids in unique], device=device)
    mask_UT = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in unique], device=device)
    positions_UT = (mask_UT.cumsum(-1) - 1).clamp(min=0)
    cache = DynamicCache(config=model.config)
    out = model(
        input_ids=ids_UT,
        attention_mask=mask_UT,
        position_ids=positions_UT,
        cache=cache,
        use_cache=True,
        logits_to_keep=1,
    )
    logits_RV, mask_RT, positions_R1 = out.logits[:, -1], mask_UT, positions_UT[:, -1:]
    take = torch.tensor([unique[request.ids] for request in requests], device=device)
    if len(unique) < len(requests):
        cache.batch_select_indices(take)
        logits_RV, mask_RT, positions_R1 = logits_RV[take], mask_RT[take], positions_R1[take]
    temperature_N1 = torch.tensor([[request.temperature] for request in requests], device=device)
    greedy_N = temperature_N1[:, 0] == 0
    temperature_N1 = torch.where(temperature_N1 == 0, 1.0, temperature_N1)
    any_random, any_greedy = not bool(greedy_N.all()), bool(greedy_N.any())

    rows = list(range(len(requests)))  # which request each row of the batch continues
    open_rows = set(rows)
    rows_R = torch.arange(len(rows), device=device)
    while True:
        logprobs_RV = torch.log_softmax(logits_RV.float() / temperature_N1[rows_R], dim=-1)
        if any_random:
            # The exponential race, as torch.multinomial runs it; for all N, so that ended rows shift nothing.
            race_NV = torch.empty(len(requests), logits_RV.shape[-1], device=device).exponential_()
            token_R = (logprobs_RV.exp() / race_NV[rows_R]).argmax(-1)
            if any_greedy:
                token_R = torch.where(greedy_N[rows_R], logprobs_RV.argmax(-1), token_R)
        else:
            token_R = logprobs_RV.argmax(-1)
        chosen = logprobs_RV.gather(-1, token_R[:, None])[:, 0].tolist()
        for row, token, logprob in zip(rows, token_R.tolist(), chosen, strict=True):
            if row not in open_rows:
                continue
            request, answer = requests[row], sampled[row]
            answer.ids.append(token)
            answer.logprobs.append(logprob)
            if token in request.stop_ids:
                answer.finish = FinishReason.STOP
            elif len(answer.ids) < request.max_new_tokens:
                continue
            open_rows.discard(row)
        if not open_rows:
            return
        if len(open_rows) < COMPACT_BELOW * len(rows):
            keep = torch.tensor([i for i, row in enumerate(rows) if row in open_rows], device=device)
            rows = [row for row in rows if row in open_rows]
            cache.batch_select_indices(keep)
            rows_R, token_R = rows_R[keep], token_R[keep]
            mask_RT, positions_R1 = mask_RT[keep], positions_R1[keep]
        mask_RT = torch.cat([mask_RT, mask_RT.new_ones(len(rows), 1)], dim=-1)
        positions_R1 = positions_R1 + 1
        out = model(
            input_ids=token_R[:, None],
            attention_mask=mask_RT,
            position_ids=positions_R1,
            cache=cache,
            use_cache=True,
        )
        logits_RV = out.logits[:, -1]


class Engine:
    """Batches what the open sessions ask for.

    Every session holds a seat. A decode starts once all seats wait for one; a seat that is given up counts no
    longer, however its rollout ended. Where a rollout is held up elsewhere (a slow tool, another rollout),
    the ones that wait go on without it after `flush_seconds` in which no rollout asked for anything or ended.

    Args:
        model: Hugging Face causal language model. It may be in training: each decode uses its present
        weights. pad_id: A token to fill up with; never attended to. context_length: Longest sequence in
        tokens; None takes the model's own limit.
    """

    def __init__(
        self, model: Any, pad_id: int, context_length: int | None = None, flush_seconds: float = 1.0
    ) -> None:
        self.model = model
        self.pad_id = pad_id
        self.context_length = context_length or getattr(model.config, "max_position_embeddings", None)
        self.flush_seconds = flush_seconds
        self.batches = 0
        """Decodes so far."""
        self._numbers = itertools.count()
        self._seats: set[int] = set()
        self._waiting: dict[int, tuple[Request, asyncio.Future[Sampled]]] = {}
        self._decoding: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._last_change = 0.0
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="engine")

    def continue_all(self, requests: Sequence[Request]) -> list[Sampled]:
        """One batch: an answer for each request, in order. Another engine overrides this."""
        return decode(self.model, requests, self.pad_id)

    @contextmanager
    def seat(self) -> Iterator[int]:
        """A place in the batch for one session; rows of a batch are in the order of the seats."""
        number = next(self._numbers)
        self._seats.add(number)
        try:
            yield number
        finally:
            self._seats.discard(number)
            self._changed()

    async def sample(self, seat: int, request: Request) -> Sampled:
        """Continues `request.ids`. Nothing is sampled (finish LENGTH) where no context is left.

        Raises:
            PolicyError: the model failed (out of memory, ...).
        """
        left = (
            request.max_new_tokens if self.context_length is None else self.context_length - len(request.ids)
        )
        if left < request.max_new_tokens:
            request = replace(request, max_new_tokens=left)
        if request.max_new_tokens <= 0:
            return Sampled()
        future: asyncio.Future[Sampled] = asyncio.get_running_loop().create_future()
        self._waiting[seat] = request, future
        try:
            self._changed()
            return await future
        finally:
            self._waiting.pop(seat, None)

    def _changed(self) -> None:
        """Looks at the batch once all who can act now have acted: others may be about to open a seat."""
        loop = asyncio.get_running_loop()
        self._last_change = loop.time()
        if not self._seats and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if len(self._waiting) >= len(self._seats):
            loop.call_soon(self._start_if_complete)
        elif self._timer is None:
            self._timer = loop.call_later(self.flush_seconds, self._time_out)

    def _start_if_complete(self) -> None:
        if self._waiting and len(self._waiting) >= len(self._seats):
            self._start()

    def _time_out(self) -> None:
        loop = asyncio.get_running_loop()
        left = self._last_change + self.flush_seconds - loop.time()
        self._timer = None
        if left > 0:
            self._timer = loop.call_later(left, self._time_out)
        elif self._waiting:
            self._start()

    def _start(self) -> None:
        if self._decoding is None or self._decoding.done():
            self._decoding = asyncio.get_running_loop().create_task(self._decode())

    async def _decode(self) -> None:
        batch = [self._waiting.pop(seat) for seat in sorted(self._waiting)]
        self.batches += 1
        requests = [request for request, _ in batch]
        work = asyncio.get_running_loop().run_in_executor(self._executor, self.continue_all, requests)
        try:
            answers = await work
        except Exception as error:  # whatever the model raises fails this batch, not the process
            for _, future in batch:
                if not future.done():
                    future.set_exception(PolicyError(f"the model failed: {type(error).__name__}: {error}"))
        else:
            for (_, future), answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)
        finally:
            self._decoding = None
            self._changed()
