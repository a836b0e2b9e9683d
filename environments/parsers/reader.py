"""Text that comes in pieces, and the steps that grammars read it with.

A grammar is a generator: `yield` means that it needs more text. Each step decides only when the text that its
decision rests on is there, or the text has ended, so that the pieces make no difference. Positions count
characters from the beginning of the whole text.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Generator, Sequence
from functools import lru_cache, partial
from typing import TypeVar, cast

T = TypeVar("T")
Step = Generator[None, None, T]
"""A step that may need more text, and comes to a T."""
Said = Callable[[str], None]
"""Takes text that is passed, in parts."""

SPACE = re.compile(r"\s*")
NOWHERE = sys.maxsize
LONGEST_WORD = 256
"""Characters."""


class Broken(Exception):
    """What was begun as a call is none.

    Args:
        reason: One line, which a model can be told.
        resume: Where reading goes on; everything from the call's beginning up to it is content. None: where
            the reader stands.
        quiet: It never looked like a call: no error.
    """

    def __init__(self, reason: str, resume: int | None = None, quiet: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.resume, self.quiet = reason, resume, quiet


class Reader:
    def __init__(self) -> None:
        self.text = ""
        """What is not given up yet; begins at `base`."""
        self.base = 0
        self.at = 0
        """Where the reader stands in `text`."""
        self.ended = False
        self._given_up: list[str] = []
        self._bases: list[int] = []
        self._found: dict[Callable[[str, int], int], tuple[int, int, int]] = {}

    @property
    def position(self) -> int:
        return self.base + self.at

    def feed(self, piece: str) -> None:
        if self.at:
            self._given_up.append(self.text[: self.at])
            self._bases.append(self.base)
            self.base += self.at
            self.text = self.text[self.at :] + piece
            self.at = 0
        else:
            self.text += piece

    def between(self, start: int, end: int) -> str:
        """The text from one position to another, both already come."""
        if start >= self.base:
            return self.text[start - self.base : end - self.base]
        first = bisect_right(self._bases, start) - 1
        known = "".join(self._given_up[first:]) + self.text
        return known[start - self._bases[first] : end - self._bases[first]]

    def go_to(self, position: int) -> None:
        """Back to a position that was passed, or forward inside the text that has come."""
        if position < self.base:
            first = bisect_right(self._bases, position) - 1
            self.text = "".join(self._given_up[first:]) + self.text
            self.base = self._bases[first]
            del self._given_up[first:], self._bases[first:]
        self.at = position - self.base

    def need(self, count: int) -> Step[bool]:
        """Waits for `count` characters from here; False where the text ends before."""
        while len(self.text) - self.at < count:
            if self.ended:
                return False
            yield
        return True

    def peek(self) -> Step[str]:
        """The next character; empty at the end."""
        if self.at < len(self.text) or (yield from self.need(1)):
            return self.text[self.at]
        return ""

    def starts(self, literal: str) -> Step[bool]:
        """Whether `literal` comes next. Decides at the first character that differs."""
        while True:
            have = self.text[self.at : self.at + len(literal)]
            if len(have) == len(literal) or self.ended or not literal.startswith(have):
                return have == literal
            yield

    def accept(self, literal: str) -> Step[bool]:
        """Passes `literal` where it comes next."""
        if (yield from self.starts(literal)):
            self.at += len(literal)
            return True
        return False

    def accept_any(self, literals: Sequence[str]) -> Step[str]:
        """Passes the first of `literals` that comes next, and returns it; empty where none does."""
        for literal in literals:
            if (yield from self.accept(literal)):
                return literal
        return ""

    def expect(self, literal: str, reason: str) -> Step[None]:
        if not (yield from self.accept(literal)):
            raise Broken(reason)

    def space(self) -> Step[None]:
        """Passes white space."""
        while True:
            found = SPACE.match(self.text, self.at)
            assert found
            self.at = found.end()
            if self.at < len(self.text) or self.ended:
                return
            yield

    def word(self, pattern: re.Pattern[str], most: int = LONGEST_WORD) -> Step[str]:
        """Passes what `pattern` (a run of single characters) matches here, up to `most` characters."""
        while True:
            found = pattern.match(self.text, self.at, self.at + most)
            end = found.end() if found else self.at
            if end < len(self.text) or self.ended or end - self.at >= most:
                word = self.text[self.at : end]
                self.at = end
                return word
            yield

    def until(self, ends: Sequence[str], said: Said | None = None) -> Step[str]:
        """Passes text up to the first of `ends`, and returns that one, not passed; empty where none comes.

        Args:
            ends: Of those that begin at the same place, the longest counts.
            said: Is given the text as it is passed.
        """
        marks = _marks(tuple(ends))
        while True:
            place = min(self._find(search, marks.longest) for search in marks.searches)
            if place < NOWHERE:
                self._pass(place - self.base, said)
                end = marks.at(self.text, self.at)
                if self.ended or len(self.text) - self.at >= marks.longest or not marks.may_go_on(self, end):
                    return end
            else:
                self._pass(len(self.text) if self.ended else marks.safe(self.text, self.at), said)
                if self.ended:
                    return ""
            yield

    def until_closed(self, closers: Sequence[str], said: Said, reason: str) -> Step[str]:
        """Passes text up to the first of `closers`, one of which must come, and returns that one.

        Raises:
            Broken: None comes. The text has ended in what it should close: what is quoted there is no call.
        """
        closer = yield from self.until(closers, said)
        if not closer:
            raise Broken(reason)
        return closer

    def _find(self, search: Callable[[str, int], int], longest: int) -> int:
        """The next position that `search` finds. Each part of the text is searched once."""
        start, place, searched = self._found.get(search, (NOWHERE, NOWHERE, 0))
        here = self.base + self.at
        if start <= here:
            if here <= place < NOWHERE:
                return place
            begin = here if place < NOWHERE else max(here, searched - longest + 1)
        else:
            begin = start = here
        place = search(self.text, begin - self.base)
        place = NOWHERE if place < 0 else place + self.base
        self._found[search] = (start, place, self.base + len(self.text))
        return place

    def _pass(self, place: int, said: Said | None) -> None:
        if said and place > self.at:
            said(self.text[self.at : place])
        self.at = place


def reader_of(text: str) -> Reader:
    """A reader of a text that is there as a whole."""
    reader = Reader()
    reader.feed(text)
    reader.ended = True
    return reader


def finish(step: Step[T]) -> T:
    """What a step comes to, whose text has ended."""
    try:
        next(step)
    except StopIteration as done:
        return cast(T, done.value)
    raise AssertionError("a step waits for more text after the end")


class _Marks:
    """Literals to look for; those that begin with the same character are looked for together."""

    def __init__(self, literals: Sequence[str]) -> None:
        self.literals = sorted(set(literals), key=len, reverse=True)
        self.longest = len(self.literals[0])
        heads: dict[str, list[str]] = {}
        for literal in self.literals:
            heads.setdefault(literal[0], []).append(literal)
        self.searches = [_search(group) for group in heads.values()]

    def at(self, text: str, place: int) -> str:
        return next(literal for literal in self.literals if text.startswith(literal, place))

    def may_go_on(self, reader: Reader, found: str) -> bool:
        """Whether a longer one than `found` may begin here, of which the end has not come yet."""
        rest = reader.text[reader.at :]
        return any(other.startswith(rest) for other in self.literals if len(other) > len(found))

    def safe(self, text: str, at: int) -> int:
        """Up to where no literal can begin, however the text goes on."""
        for place in range(max(at, len(text) - self.longest + 1), len(text)):
            if any(literal.startswith(text[place:]) for literal in self.literals):
                return place
        return len(text)


_marks = lru_cache(maxsize=256)(_Marks)


def _search(literals: Sequence[str]) -> Callable[[str, int], int]:
    """A function of text and offset: the next place of one of the literals, -1 for none."""
    if len(literals) == 1:
        return partial(_find_one, literals[0])
    pattern = re.compile("|".join(map(re.escape, literals)))

    def search(text: str, at: int) -> int:
        found = pattern.search(text, at)
        return found.start() if found else -1

    return search


def _find_one(literal: str, text: str, at: int) -> int:
    return text.find(literal, at)
