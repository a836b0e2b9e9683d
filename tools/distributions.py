"""Distributions: which toolsets an item is offered, drawn by chance that its seed and key decide.

Each set of a distribution is drawn by itself, with its own percentage; an item for which none was drawn gets
one of them, by the same percentages. A set that cannot be used here is never drawn, and whether it can does
not change the draws of the others. The shipped ones are distributions.yaml; a person's own file (setting
`toolsets_file`) adds distributions, and names for several sets together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from rl_cli.core.errors import BadUsage, did_you_mean
from rl_cli.core.handwritten import load_yaml, read_text, short
from tools.toolsets import TOOLSETS, unknown_toolset, why_unavailable

SECTIONS = ("toolsets", "distributions")
FIELDS = ("description", "toolsets")


@dataclass(frozen=True)
class Distribution:
    """In how many of a hundred items each toolset is offered."""

    name: str
    description: str
    percents: Mapping[str, float]
    """Name of a toolset, or of several together -> above 0, at most 100."""
    own: bool = False
    """From the person's file."""


@dataclass(frozen=True)
class Catalogue:
    """The distributions there are, and the names for several toolsets together."""

    distributions: Mapping[str, Distribution]
    combined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def find(self, name: str) -> Distribution:
        """Raises BadUsage with the nearest names where there is none."""
        if name not in self.distributions:
            raise BadUsage(f"unknown distribution '{name}'", did_you_mean(name, list(self.distributions)))
        return self.distributions[name]

    def members(self, name: str) -> tuple[str, ...]:
        """The toolsets that a name stands for.

        Raises:
            BadUsage: It stands for none, or for the assistant's own.
        """
        if name in self.combined:
            return self.combined[name]
        if name not in TOOLSETS:
            raise unknown_toolset(name, [*_offered(), *self.combined])
        if TOOLSETS[name].operations:
            raise BadUsage(f"toolset '{name}' is the assistant's own, no rollout is offered it")
        return (name,)

    def usable(self, name: str, why: Callable[[str], str | None] = why_unavailable) -> dict[str, str | None]:
        """Each set of a distribution, and why it cannot be used here (None: it can)."""
        reasons: dict[str, str | None] = {}
        for entry in self.find(name).percents:
            reasons[entry] = next((reason for part in self.members(entry) if (reason := why(part))), None)
        return reasons

    def draw(
        self,
        name: str,
        seed: int,
        item: str,
        why: Callable[[str], str | None] = why_unavailable,
    ) -> tuple[str, ...]:
        """The toolsets of one item, sorted, at least one; the same wherever the same sets can be used.

        Args:
            item: What tells the item from others, such as its key.
            why: Tells why a toolset cannot be used, or None.

        Raises:
            BadUsage: There is no such distribution, or none of its sets can be used here.
        """
        percents, reasons = self.find(name).percents, self.usable(name, why)
        able = {entry: percent for entry, percent in percents.items() if reasons[entry] is None}
        if not able:
            told = "; ".join(f"{entry}: {reason}" for entry, reason in reasons.items())
            raise BadUsage(f"no toolset of distribution '{name}' can be used here", told)
        drawn = [entry for entry in able if _chance(seed, item, entry).random() * 100 < able[entry]]
        if not drawn:
            drawn = _chance(seed, item, "").choices(list(able), list(able.values()))
        return tuple(sorted({part for entry in drawn for part in self.members(entry)}))


def load_catalogue(own: Path | None = None) -> Catalogue:
    """The shipped distributions, and those of a person's file.

    Raises:
        BadUsage: The file is malformed, uses a name that is taken or unknown, or a percentage is none.
    """
    if own is None:
        return _shipped()
    content = load_yaml(read_text(own), str(own))
    if not isinstance(content, dict) or set(content) - set(SECTIONS):
        raise BadUsage(f"{own} must be a mapping of {' and '.join(SECTIONS)}, and nothing else")
    combined = {
        name: _combined(name, entry, own) for name, entry in _entries(content, "toolsets", own).items()
    }
    catalogue = Catalogue(_shipped().distributions, combined)
    added = {
        name: _distribution(name, entry, catalogue, str(own))
        for name, entry in _entries(content, "distributions", own).items()
    }
    if taken := sorted(added.keys() & catalogue.distributions.keys()):
        raise BadUsage(f"{own}: distribution '{taken[0]}' is a shipped one", "choose another name")
    return Catalogue({**catalogue.distributions, **added}, combined)


@cache
def _shipped() -> Catalogue:
    file = Path(__file__).with_name("distributions.yaml")
    entries = load_yaml(read_text(file), file.name)
    return Catalogue({name: _distribution(name, entry, Catalogue({}), "") for name, entry in entries.items()})


def _chance(seed: int, item: str, entry: str) -> random.Random:
    return random.Random(f"{seed}/{item}/{entry}")


def _offered() -> list[str]:
    return [name for name, toolset in TOOLSETS.items() if not toolset.operations]


def _entries(content: dict[str, Any], section: str, file: Path) -> dict[str, Any]:
    entries = content.get(section) or {}
    if not isinstance(entries, dict) or not all(isinstance(name, str) and name for name in entries):
        raise BadUsage(f"{file}: '{section}' must be a mapping with names as keys")
    return entries


def _combined(name: str, entry: Any, file: Path) -> tuple[str, ...]:
    if name in TOOLSETS:
        raise BadUsage(f"{file}: toolset '{name}' is a shipped one", "choose another name")
    if not isinstance(entry, list) or not entry or not all(isinstance(part, str) for part in entry):
        raise BadUsage(f"{file}: toolset '{name}' must be a list of toolsets such as [terminal, files]")
    try:
        return tuple(part for known in entry for part in Catalogue({}).members(known))
    except BadUsage as error:
        raise BadUsage(f"{file}: toolset '{name}': {error}", error.hint) from None


def _distribution(name: str, entry: Any, catalogue: Catalogue, file: str) -> Distribution:
    """The shipped ones are read as a person's own, but for the file's name."""
    where = f"{file}: distribution '{name}'" if file else f"distribution '{name}'"
    if not isinstance(entry, dict) or set(entry) - set(FIELDS) or not isinstance(entry.get("toolsets"), dict):
        raise BadUsage(
            f"{where} must have 'toolsets', a mapping such as {{web: 80}}, and may have 'description'"
        )
    percents = _percents(where, entry["toolsets"], catalogue.members)
    return Distribution(name, str(entry.get("description", "")), percents, own=bool(file))


def _percents(where: str, given: dict[Any, Any], members: Callable[[str], Iterable[str]]) -> dict[str, float]:
    if not given:
        raise BadUsage(f"{where} names no toolset")
    for entry, percent in given.items():
        try:
            members(str(entry))
        except BadUsage as error:
            raise BadUsage(f"{where}: {error}", error.hint) from None
        if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 < percent <= 100:
            shown = short(repr(percent))
            raise BadUsage(f"{where}: {entry} must be above 0 and at most 100 percent, not {shown}")
    return {str(entry): float(percent) for entry, percent in given.items()}
