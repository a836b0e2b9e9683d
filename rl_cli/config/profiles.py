"""Profiles: named sets of defaults for a kind of machine, as YAML files beside this module."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_cli.config.yaml_text import read_yaml
from rl_cli.core.errors import BadUsage, did_you_mean
from rl_cli.core.handwritten import short

FOLDER = Path(__file__).with_name("profiles")


@dataclass(frozen=True)
class Profile:
    name: str
    description: str
    needs_gpu: bool
    defaults: dict[str, Any]
    """Nested, as in a run.yaml."""
    locked: dict[str, str]
    """Dotted field, or a whole section, that may not be changed -> why."""
    pace: dict[str, float] | None = None
    """On a usual machine of its kind: `start_seconds`, and `rollouts_per_second` over all steps."""

    def lock_reason(self, field: str) -> str | None:
        """Why a dotted field may not be changed, or None if it may."""
        parts = field.split(".")
        prefixes = (".".join(parts[:count]) for count in range(1, len(parts) + 1))
        return next((self.locked[prefix] for prefix in prefixes if prefix in self.locked), None)


def profile_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load_profile(name: str) -> Profile:
    """Raises BadUsage, with the nearest names, for a profile that does not exist."""
    if name not in profile_names():
        name = short(name)
        raise BadUsage(f"there is no profile {name!r}", did_you_mean(name, profile_names()))
    return Profile(name=name, **read_yaml(FOLDER / f"{name}.yaml"))
