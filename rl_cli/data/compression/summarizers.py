"""Puts a run of turns in words: by extracts from them, or by a policy whose answers are paid for once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from environments.policies.base import (
    Bounds,
    BudgetExhausted,
    Completion,
    ContextOverflow,
    PolicyError,
    Sampling,
)
from environments.policies.endpoints.token_estimate import ASCII_PER_TOKEN
from environments.tool_calls import first_of
from prompts.loader import render
from rl_cli.core.cuts import ends, head, one_line
from rl_cli.core.messages import Message, system, user
from rl_cli.core.redaction import redact_text
from rl_cli.data.compression.extractive import EXTRACTIVE, extract
from rl_cli.data.compression.paid import Paid, PaidSummaries, key_of
from rl_cli.data.compression.writer import Writer

WORDS_PER_TOKEN = 0.6
SHOWN_RESULT, SHOWN_TURN = 3_000, 6_000
"""Characters of a tool turn, of another turn, that the policy is shown."""
WINDOW_SHARE = 0.6
"""Of the policy's window that the turns may fill."""
GIVE_UP_AFTER = 10
"""Requests that fail one after the other; nothing more is asked then."""
LONGEST_REASON = 300

Turns = Sequence[tuple[str, str]]
"""Role and text of each."""


class NotSummarised(Exception):
    """There is no summary; its text says why. `paid` is what an answer of no use has cost."""

    def __init__(self, reason: str, paid: Paid | None = None) -> None:
        super().__init__(reason)
        self.paid = paid


class Stopped(Exception):
    """Nothing more is to be asked."""


@dataclass(frozen=True)
class Words:
    """The words of a summary, and what they cost: nothing if they are extracts."""

    text: str
    paid: Paid | None = None


class Summarizer(Protocol):
    """Puts turns in words."""

    name: str
    trouble: PolicyError | None
    """Why nothing more is asked; None as long as all is well. BudgetExhausted: there is no money for it."""

    async def words(self, turns: Turns, tokens: int, chars: int) -> Words:
        """A summary.

        Args:
            turns: What it is of.
            tokens: How long it may be.
            chars: The same in characters, about.

        Raises:
            NotSummarised: There is none.
            Stopped: It was not asked for any more.
        """
        ...


class Extractive:
    """Implements `Summarizer` with `extract`."""

    name = EXTRACTIVE
    trouble: PolicyError | None = None

    async def words(self, turns: Turns, tokens: int, chars: int) -> Words:
        return Words(extract(turns, chars))


class PolicySummarizer:
    """Implements `Summarizer` with a policy, which is asked the same thing once only.

    Args:
        writer: Who is asked.
        paid: What was answered before.
        concurrency: Requests at one time, at most.
        seconds: A request may take.
        stop: Once it is set, nothing more is asked.
    """

    def __init__(
        self,
        writer: Writer,
        paid: PaidSummaries,
        concurrency: int,
        seconds: float,
        stop: asyncio.Event,
    ) -> None:
        self.name = writer.policy.name
        self.trouble: PolicyError | None = None
        self._policy, self._meter, self._paid = writer.policy, writer.meter, paid
        self._seconds, self._stop = seconds, stop
        self._shown = int(WINDOW_SHARE * writer.window * ASCII_PER_TOKEN)
        self._slots = asyncio.Semaphore(concurrency)
        self._asked: dict[bytes, asyncio.Future[Words]] = {}
        self._failures = 0

    async def words(self, turns: Turns, tokens: int, chars: int) -> Words:
        request = [
            system(render("trajectory_summary", words=str(int(tokens * WORDS_PER_TOKEN)))),
            user(redact_text(_as_text(turns, self._shown))),
        ]
        key = key_of(self.name, request)
        if known := self._paid.find(key):
            return Words(known.text, known)
        if key not in self._asked:
            task = asyncio.ensure_future(self._ask(key, request))
            self._asked[key] = task
            task.add_done_callback(lambda _: self._asked.pop(key))
        return await asyncio.shield(self._asked[key])

    async def _ask(self, key: bytes, request: list[Message]) -> Words:
        async with self._slots:
            if self._stop.is_set():
                raise Stopped
            if self.trouble is not None:
                raise NotSummarised(f"not asked: {_line(self.trouble)}")
            completion = await self._complete(key, request)
            paid = self._paid_of(key, completion)
            if not paid.text:
                raise NotSummarised(f"{self.name} answered without text ({completion.finish_reason})", paid)
            await self._paid.add(paid)  # no more answers are under way than there are slots
        return Words(paid.text, paid)

    def _paid_of(self, key: bytes, completion: Completion) -> Paid:
        return Paid(
            key=key.hex(),
            text=redact_text((completion.message["content"] or "").strip()),
            model=self.name,
            input_tokens=completion.usage.input_tokens,
            output_tokens=completion.usage.output_tokens,
            calls=completion.usage.requests,
            cost_usd=completion.usage.dollars,
        )

    async def _complete(self, key: bytes, request: list[Message]) -> Completion:
        bounds = Bounds(self._meter, time.monotonic() + self._seconds)
        try:
            async with self._policy.open(
                f"summary-{key.hex()}", [], Sampling(temperature=None), bounds=bounds
            ) as session:
                done = await first_of(session.complete(request), None, self._seconds)
                if done is None:
                    raise PolicyError(f"{self.name} gave no summary within {self._seconds:g} s")
                completion = done.result()
        except PolicyError as error:
            self._note(error)
            raise NotSummarised(_line(error)) from error
        self._failures = 0
        return completion

    def _note(self, error: PolicyError) -> None:
        """Whether to go on asking after this failure."""
        self._failures += not isinstance(error, ContextOverflow)
        if self.trouble is None and (self._failures >= GIVE_UP_AFTER or isinstance(error, BudgetExhausted)):
            self.trouble = error


def _line(error: PolicyError) -> str:
    return one_line(str(error), LONGEST_REASON)


def _as_text(turns: Turns, chars: int) -> str:
    shown = (f"{role}: {ends(text, SHOWN_RESULT if role == 'tool' else SHOWN_TURN)}" for role, text in turns)
    return ends("\n\n".join(shown), chars)


def as_turn(words: str, turns: int, chars: int) -> str:
    """The text of the turn that takes the place of so many turns, its words cut to `chars` characters."""
    return render("trajectory_summary_turn", turns=str(turns), words=head(words, chars))
