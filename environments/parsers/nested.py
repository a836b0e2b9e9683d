"""Values in brackets that are read while they come, and told as JSON; whatever their scalars look like.

Nothing recurses. In parentheses stands a tuple, which becomes an array, or one value, which stays that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from environments.parsers.json_value import DEEPEST
from environments.parsers.reader import Broken, Reader, Said, Step

_CLOSES = {"[": "]", "(": ")", "{": "}"}


class Notation(ABC):
    """What a notation of values looks like.

    Attributes:
        brackets: Those that it has.
        comma_at_end: Whether one may stand after the last value.
    """

    brackets: str
    comma_at_end: bool

    @abstractmethod
    def scalar(self, reader: Reader, said: Said, path: list[str]) -> Step[None]:
        """Passes what is in no brackets; `path` has the key of each open object, or "" for an array."""

    @abstractmethod
    def key(self, reader: Reader, said: Said) -> Step[str]:
        """Passes a key with what follows it, tells it as JSON with its colon, and returns it."""


def pass_nested(reader: Reader, notation: Notation, said: Said) -> Step[None]:
    """Passes one value, from its first character; `said` is given its JSON as it comes.

    Raises:
        Broken: It is none, or the text ends in it.
    """
    open_: list[_Open] = []
    path: list[str] = []
    while True:
        sign = yield from reader.peek()
        if sign and sign in notation.brackets:
            reader.at += 1
            if len(open_) == DEEPEST:
                raise Broken(f"a value is nested more than {DEEPEST} levels deep")
            open_.append(_Open(sign, said))
            path.append("")
            said, first = open_[-1].said, True
        else:
            yield from notation.scalar(reader, said, path)
            first = False
        while open_:
            yield from reader.space()
            comma = not first and (yield from reader.accept(","))
            if comma:
                said = open_[-1].take_comma()
                yield from reader.space()
            may_close = notation.comma_at_end or not comma
            if not (may_close and (yield from reader.accept(_CLOSES[open_[-1].sign]))):
                break
            said, first = open_.pop().close(empty=first), False
            path.pop()
        if not open_:
            return
        if not (first or comma):
            raise Broken("a value has no comma or closing bracket where one must be")
        if not first:
            said(", ")
        if open_[-1].sign == "{":
            path[-1] = yield from notation.key(reader, said)


class _Open:
    """An open bracket. What is in parentheses waits for the comma that makes it a tuple."""

    def __init__(self, sign: str, outer: Said) -> None:
        self.sign, self.said = sign, outer
        self._outer = outer
        self._held: list[str] = []
        if sign == "(":
            self.said = self._held.append
        else:
            outer(sign)

    def take_comma(self) -> Said:
        """What takes the next value."""
        if self.said != self._outer:
            self._outer("[" + "".join(self._held))
            self.said = self._outer
        return self.said

    def close(self, empty: bool) -> Said:
        """What takes what comes after it."""
        if self.sign != "(":
            self._outer(_CLOSES[self.sign])
        elif self.said == self._outer:
            self._outer("]")
        else:
            self._outer("[]" if empty else "".join(self._held))
        return self._outer
