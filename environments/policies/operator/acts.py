"""What one clause asks for, the same for every language."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Act(Enum):
    TRAIN = auto()
    MAYBE_TRAIN = auto()
    """A verb that means training only if an environment is named ("start gsm8k")."""
    TRAIN_MENTION = auto()
    """Training is spoken of, not ordered."""
    HOW = auto()
    """A question about training."""
    TEST = auto()
    ENVIRONMENTS = auto()
    DESCRIBE = auto()
    SELECT = auto()
    CONFIG = auto()
    EDIT = auto()
    STATUS = auto()
    WATCH = auto()
    STOP = auto()
    RESUME = auto()
    """Going on with the training of a run that has ended."""
    RESULTS = auto()
    COMPARE = auto()
    RUNS = auto()
    TOOLS = auto()
    LIST = auto()
    HELP = auto()
    BEST = auto()
    """Which of all runs is the best."""
    HOW_LONG = auto()
    """How long a training would take."""
    COST = auto()
    FORBIDDEN = auto()
    """An order for something that has no procedure and would be grave: deleting, uploading."""


@dataclass(frozen=True)
class Reading:
    """How one clause was read."""

    act: Act | None
    text: str
    question: bool = False
    """It asks; nothing may be started for it."""
    negated: bool = False
    """It says not to do `act` (or, with None, something else)."""
    restricted: bool = False
    """It orders `act` and excludes something."""
    conditional: bool = False
    """It ties `act` to a condition."""
    order: int = 0
    """Which clause of the request it is."""


def one_of(phrases: str) -> str:
    """A pattern that matches any of the phrases: each line is one, or several between bars."""
    return "|".join(line.strip() for line in phrases.splitlines() if line.strip())
