"""What can be spent: amounts of dollars, tokens, GPU hours and hours, in figures and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

UNITS = ("dollars", "tokens", "gpu_hours", "hours")


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


def in_words(unit: str, amount: float) -> str:
    """`$0.42`, `1,200 tokens`, `1.3 GPU hours`, `2 hours`."""
    if unit == "dollars":
        return money(amount)
    if unit == "tokens":
        return f"{amount:,.0f} tokens"
    return f"{amount:,.3g} {'GPU hours' if unit == 'gpu_hours' else 'hours'}"


def money(dollars: float) -> str:
    """Two digits after the point; less than a cent with two digits that count."""
    if dollars and abs(dollars) < 0.01:
        return f"${float(f'{dollars:.2g}'):.10f}".rstrip("0")
    return f"${dollars:,.2f}"
