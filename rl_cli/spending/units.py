"""What can be spent: amounts of dollars, tokens, GPU hours and hours, in figures and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

UNITS = ("dollars", "tokens", "gpu_hours", "hours")
MOST: dict[str, float] = {"dollars": 1e6, "tokens": 10**12, "gpu_hours": 1e6, "hours": 1e6}
"""Of one request, run or turn: more than that is a mistake or a lie, and would drown all that is true."""


@dataclass(frozen=True)
class Amounts:
    """So much of each unit; they add up."""

    dollars: float = 0.0
    tokens: int = 0
    """Input and output together."""
    gpu_hours: float = 0.0
    """GPUs times hours."""
    hours: float = 0.0
    """Wall clock: of the assistant at work on a turn, or of a run."""

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(*(self.of(unit) + other.of(unit) for unit in UNITS))  # type: ignore[arg-type]

    def of(self, unit: str) -> float:
        return float(getattr(self, unit)) if unit != "tokens" else self.tokens

    def believable(self) -> Amounts:
        """The same within 0 and MOST."""
        return Amounts(*(believable(unit, self.of(unit)) for unit in UNITS))  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, float]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, float]) -> Amounts:
        return cls(
            float(values.get("dollars") or 0),
            int(values.get("tokens") or 0),
            float(values.get("gpu_hours") or 0),
            float(values.get("hours") or 0),
        )


NOTHING = Amounts()


def believable(unit: str, amount: float) -> float:
    """The amount within 0 and MOST; what is no number is the most."""
    most = MOST[unit]
    return max(amount, type(most)(0)) if amount <= most else most


def in_words(unit: str, amount: float) -> str:
    """`$0.42`, `1,200 tokens`, `1.3 GPU hours`, `53 s`, `1 min 20 s`, `2.5 h`, `40 s of GPU time`."""
    if unit == "dollars":
        return money(amount)
    if unit == "tokens":
        return f"{amount:,.0f} tokens"
    if unit == "gpu_hours":
        return f"{amount:,.4g} GPU hours" if amount >= 1 else f"{time_in_words(amount)} of GPU time"
    return time_in_words(amount)


def time_in_words(hours: float) -> str:
    """`0.4 s`, `53 s`, `1 min 20 s`, `30 min`, `2.5 h`."""
    seconds = hours * 3600
    if 0 < seconds < 9.95:
        return f"{seconds:.1f} s" if seconds >= 0.05 else "0.1 s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{hours:,.1f}".removesuffix(".0") + " h"


def money(dollars: float) -> str:
    """Two digits after the point; less than a cent with two digits that count."""
    if dollars and abs(dollars) < 0.01:
        return f"${float(f'{dollars:.2g}'):.10f}".rstrip("0")
    return f"${dollars:,.2f}"
