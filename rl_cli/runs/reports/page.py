"""What a report consists of, as plain text and figures: HTML and Markdown are made of the same page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rl_cli.runs.curves import Curve


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    aside: str = ""
    """Said after it, more quietly."""
    hover: str = ""
    """Shown when it is pointed at."""
    tone: str = ""
    """good, warn or bad."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    kind: str = ""
    """about (quiet), note (set apart), or nothing."""


@dataclass(frozen=True)
class Table:
    heads: Sequence[str]
    """Empty for a table of names and values."""
    rows: Sequence[Sequence[Cell | str]]
    numbers: int = 0
    """So many columns after the first hold numbers."""
    kind: str = ""
    """narrow, scores, facts, fixed or stacked (each row a card on a phone), for the page's style."""
    marked: frozenset[int] = frozenset()
    """Rows that stand out."""


@dataclass(frozen=True)
class Code:
    """Text whose lines and blanks count."""

    text: str


@dataclass(frozen=True)
class Chart:
    """One figure over the steps."""

    title: str
    curves: Sequence[tuple[str, Curve]]
    """(whose, curve); the name is empty where there is one."""
    dots: bool = False
    levels: Sequence[tuple[str, float]] = ()
    """(label, value) of lines to compare with."""
    start: tuple[str, float] | None = None
    """(label, value) of what was measured at step 0 in another way."""
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True)
class Charts:
    charts: Sequence[Chart]


@dataclass(frozen=True)
class Answer:
    """What a policy said to a prompt, and what that was worth."""

    label: str
    tone: str
    reward: str
    text: str


@dataclass(frozen=True)
class Sample:
    """Rollouts of one prompt."""

    title: str
    prompt: str
    """Empty where it is not known."""
    answers: Sequence[Answer]


@dataclass(frozen=True)
class Columns:
    """Small tables beside each other where there is room."""

    tables: Sequence[Table]


Block = Text | Table | Code | Charts | Sample | Columns


@dataclass(frozen=True)
class Section:
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    title: str
    state: str
    """A run's state, or empty."""
    about: str
    outcome: str
    notes: Sequence[str] = ()
    sections: Sequence[Section] = field(default_factory=list)
    """Those without blocks are left out."""
    footer: str = ""
