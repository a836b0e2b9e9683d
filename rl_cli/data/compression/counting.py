"""Counts the texts of many rows together: whoever asks while a count is under way waits for the next."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Self

from rl_cli.core.cuts import one_line
from rl_cli.data.compression.tokenizers import Tokenizer

BATCH_CHARS = 500_000
"""Of one count. A tokenizer holds some 30 bytes for each character meanwhile."""
AT_ONCE = 2
"""Counts at one time: the cores have work while the result of one is taken and the next is put together."""

LONGEST_REASON = 200

_Asked = tuple[list[str], "asyncio.Future[list[int]]"]


class Uncountable(Exception):
    """The tokenizer fails at these texts; its text says how."""


class Counting:
    """A tokenizer for many callers at once; it works in threads, so that they go on meanwhile."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._waiting: deque[_Asked] = deque()
        self._some = asyncio.Event()
        self._threads = ThreadPoolExecutor(AT_ONCE, "tokenizer")

    async def __aenter__(self) -> Self:
        self._workers = [asyncio.create_task(self._work()) for _ in range(AT_ONCE)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def count(self, texts: Sequence[str], ahead: bool = False) -> list[int]:
        """Tokens of each text; of one longer than BATCH_CHARS, of its pieces.

        Args:
            texts: What is counted.
            ahead: Before all that waits: so a row that is nearly done makes room for others.

        Raises:
            Uncountable: The tokenizer fails at them.
        """
        loop = asyncio.get_running_loop()
        pieces = [(number, piece) for number, text in enumerate(texts) for piece in _pieces(text)]
        asked: list[_Asked] = [
            (part, loop.create_future()) for part in _parts([piece for _, piece in pieces])
        ]
        if ahead:
            self._waiting.extendleft(reversed(asked))
        else:
            self._waiting.extend(asked)
        self._some.set()
        found = await asyncio.gather(*(answer for _, answer in asked))
        counts = [0] * len(texts)
        for (number, _), count in zip(pieces, chain.from_iterable(found), strict=True):
            counts[number] += count
        return counts

    async def _work(self) -> None:
        while True:
            await self._some.wait()
            if batch := self._next():
                await self._answer(batch)

    async def _answer(self, batch: Sequence[_Asked]) -> None:
        """Counts a batch; where the tokenizer fails at it, each part alone, so that not all rows fail."""
        texts = [text for asked, _ in batch for text in asked]
        try:
            counts = await asyncio.get_running_loop().run_in_executor(self._threads, self._count, texts)
        except Uncountable as error:
            if len(batch) > 1:
                for one in batch:
                    await self._answer([one])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        at = 0
        for asked, answer in batch:
            if not answer.done():  # who asked may have been cancelled
                answer.set_result(counts[at : at + len(asked)])
            at += len(asked)

    def _count(self, texts: list[str]) -> list[int]:
        try:
            return self._tokenizer.count(texts)
        except BaseException as error:  # a panic in Rust is no Exception
            reason = one_line(f"{type(error).__name__}: {error}", LONGEST_REASON)
            raise Uncountable(f"its tokens cannot be counted: {reason}") from error

    def _next(self) -> list[_Asked]:
        """What is counted next: some that wait, of BATCH_CHARS or a little more together."""
        batch, chars = [], 0
        while self._waiting and chars < BATCH_CHARS:
            batch.append(self._waiting.popleft())
            chars += sum(map(len, batch[-1][0]))
        if not self._waiting:
            self._some.clear()
        return batch


def _pieces(text: str) -> Iterator[str]:
    """A text of which one count would take gigabytes, cut before white space: a token more for each cut."""
    start = 0
    while len(text) - start > BATCH_CHARS:
        end = start + BATCH_CHARS
        space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
        end = space if space > start else end
        yield text[start:end]
        start = end
    yield text[start:]


def _parts(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in lists of BATCH_CHARS or a little more, so that a giant row is not counted at once."""
    part: list[str] = []
    chars = 0
    for text in texts:
        part.append(text)
        chars += len(text)
        if chars >= BATCH_CHARS:
            yield part
            part, chars = [], 0
    if part:
        yield part
