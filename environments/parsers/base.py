"""What a parser finds in a model's text. Standard library only, like every parser."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ParsedCall:
    name: str
    arguments: str
    """JSON text of an object."""


@dataclass(frozen=True)
class ParseError:
    """A tool call that was begun and could not be read. Its text stays in the content."""

    position: int
    """Offset in the text, in characters."""
    reason: str


@dataclass
class Parsed:
    content: str | None
    """What is left for a reader; None where nothing is."""
    reasoning: str | None = None
    calls: list[ParsedCall] = field(default_factory=list)
    errors: list[ParseError] = field(default_factory=list)
