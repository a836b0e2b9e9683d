"""What a family's wire grammar gives: how its calls are read, and how they are written."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from environments.parsers.argument_types import ParameterTypes
from environments.parsers.base import ParsedCall
from environments.parsers.output import Output
from environments.parsers.reader import LONGEST_WORD, Broken, Reader, Step


class CannotRender(ValueError):
    """The grammar has no way to write a call so that it is read back the same."""


def writable(word: str, pattern: re.Pattern[str], longest: int = LONGEST_WORD) -> str:
    """A name that `Reader.word` reads back with the same pattern.

    Raises:
        CannotRender: It does not.
    """
    if not pattern.fullmatch(word) or len(word) > longest:
        raise CannotRender(f"{word!r} cannot be written as a name")
    return word


_UNKNOWN = ParameterTypes(None)


@dataclass
class Context:
    """What a grammar reads with."""

    reader: Reader
    out: Output
    tools: Mapping[str, ParameterTypes]
    """Each offered tool, by name; empty where no tools were given."""
    limits: Sequence[str] = ()
    """What ends a broken call, whatever its grammar: tags of reasoning, tokens that stop."""
    begun: int = 0
    """Where the call being read begins: from here its text becomes content, if it is none."""
    in_text: bool = False
    """Other text than calls and blocks of reasoning stands before it."""

    def after_word(self) -> bool:
        """Whether a word ends right where the call begins: a bracket there is an index."""
        last = self.reader.between(self.begun - 1, self.begun) if self.begun else ""
        return last.isalnum() or last == "_"

    def types_of(self, tool: str) -> ParameterTypes:
        return self.tools.get(tool, _UNKNOWN)

    def offers(self, name: str) -> bool:
        """Whether a tool has that name; True where no tools were given."""
        return not self.tools or name in self.tools

    def passed(self) -> None:
        """What was read up to here is done: what breaks later leaves it alone."""
        self.begun = self.reader.position

    def say_content(self, text: str) -> None:
        """Tells text that the reader is passing."""
        self.out.content(text, self.reader.position)

    def give_up(self, broken: Broken) -> None:
        """What was begun is no call: its text is content, and reading goes on after it."""
        reader, begun = self.reader, self.begun
        resume = reader.position if broken.resume is None else broken.resume
        resume = max(resume, begun + 1)
        self.out.break_call(begun, broken.reason, broken.quiet)
        text = reader.between(begun, resume)
        reader.go_to(resume)
        self.out.content(text, begun)
        self.passed()


class Grammar(ABC):
    """A wire grammar of calls."""

    noise: re.Pattern[str] | None = None
    """Matches at an opener where it surely begins no call, as far as it is content: for floods of openers."""

    @property
    @abstractmethod
    def openers(self) -> Sequence[str]:
        """What a call, or a section of calls, begins with; one of a single character may be anything else."""

    @abstractmethod
    def read(self, opener: str, context: Context) -> Step[None]:
        """Reads a call or a section of calls; the reader stands before its opener, which has come.

        Each call is told to `context.out`, and `context.passed()` called after it.

        Raises:
            Broken: What stands from `context.begun` on is no call.
        """

    @abstractmethod
    def render(self, calls: Sequence[ParsedCall]) -> str:
        """The calls as a model of the family writes them.

        Raises:
            CannotRender: One of them cannot be written.
        """
