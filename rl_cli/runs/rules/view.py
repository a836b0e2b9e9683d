"""What a health rule is given, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rl_cli.config.tree import AlertSection
from rl_cli.runs.curves import Curve, Curves

Row = dict[str, Any]


@dataclass(frozen=True)
class Limits:
    """What the config allows; None switches a rule off."""

    stall_seconds: float = 900
    no_signal_batches: int = 5
    target_accuracy: float | None = None
    plateau_patience: int | None = None
    max_hours: float | None = None
    max_gpu_hours: float | None = None
    max_dollars: float | None = None
    gpus: int = 0
    gpu_hour: float = 0.0
    """Dollars per GPU hour."""
    deadline: float | None = None
    """Unix time."""
    batch_size: int = 256
    """Rollouts per step."""
    total_steps: int | None = None
    checkpoint_every: int | None = None
    """GRPO steps."""
    alerts: AlertSection = field(default_factory=AlertSection)


@dataclass(frozen=True)
class Room:
    """What was free of something that can run out, at a moment."""

    time: float
    """Seconds, of any clock that only goes forward."""
    free: float
    """Bytes."""
    total: float
    """Bytes."""


@dataclass(frozen=True)
class View:
    """What the rules see. What is not known is left as it is here, and its rules are silent."""

    limits: Limits
    grpo: Curves = field(default_factory=Curves)
    sft: Curves = field(default_factory=Curves)
    validations: Curve = field(default_factory=Curve)
    """Accuracy on the validation split."""
    last_row: Row = field(default_factory=dict)
    """The newest row of metrics.jsonl."""
    samples: Sequence[Row] = ()
    """The newest rows of samples.jsonl, oldest first."""
    now: float = 0.0
    """Unix time."""
    running_seconds: float = 0.0
    """Since the run started."""
    quiet_seconds: float = 0.0
    """Since any of its files grew."""
    refused: str | None = None
    """Why the budgets of the session or the day let it go on no longer."""
    dead: str | None = None
    """How its trainer ended, where it has ended without a word."""
    checkpoint: int | None = None
    """Step of the newest checkpoint."""
    disk: Sequence[Room] = ()
    """Free space where the run writes, oldest first."""
    memory: Sequence[Room] = ()
    """Memory that processes can still get, oldest first."""


@dataclass(frozen=True)
class Finding:
    rule: str
    """Its id."""
    message: str
    """One line with the figures in it."""
    advice: str
    """What to do about it; for a verdict, what is done."""
    verdict: Literal["failed", "stopped", "finished"] | None = None
    """The state that the run is to end in; None for an alert."""
    at_once: bool = False
    """Saving and a last evaluation make no sense: end the processes."""
    evidence: dict[str, Any] = field(default_factory=dict)
    """The figures that decided, with the steps they are from."""
    severity: Literal["info", "warning", "critical"] = "warning"
    """critical: it will not get better; warning: somebody should look; info: a good end, never an alert."""


Rule = Callable[[View], Iterator[Finding]]
