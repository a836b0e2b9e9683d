"""What a parser finds in a model's text. Standard library only, like every parser."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ParsedCall:
    name: str
    arguments: str
    """JSON text of an object: as the model wrote it, where its grammar is JSON."""
    id: str = ""
    """The model's own, where its grammar has one."""


@dataclass(frozen=True)
class ParseError:
    """What was begun as a tool call and could not be read: its text stays in the content.

    Text between two calls is told of here too, in families whose content ends with the first call.
    """

    position: int
    """Offset in the text, in characters."""
    reason: str


@dataclass
class Parsed:
    """A model's turn, taken apart. White space around content and reasoning is dropped."""

    content: str | None
    """What is left for a reader; None where nothing is."""
    reasoning: str | None = None
    tool_calls: list[ParsedCall] = field(default_factory=list)
    errors: list[ParseError] = field(default_factory=list)
