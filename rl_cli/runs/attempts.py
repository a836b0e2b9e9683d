"""resume.json: from where the current attempt of a run goes on, and what was changed for it.

A run that was never resumed has none: it is at its first attempt. run.yaml is never edited; what was changed
since is kept here and applied on top of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_cli.core.errors import BadUsage
from rl_cli.core.files import read_json

NAME = "resume.json"


@dataclass(frozen=True)
class Resume:
    """What a resumed run starts from."""

    attempt: int
    """2 for the first resume."""
    checkpoint: Path | None
    """The folder; None: it begins at the beginning."""
    step: int
    """The step of the checkpoint, 0 without one: the next one is step + 1."""
    changes: dict[str, Any]
    """Dotted field -> value, of all resumes so far."""


def read_resume(folder: Path, name: str = NAME) -> Resume | None:
    """What the run in `folder` was resumed from; None if it never was.

    Raises:
        BadUsage: The file is damaged.
    """
    try:
        record = read_json(folder / name)
        attempt, step, changes = record["attempt"], record["step"], dict(record["changes"])
        checkpoint = folder / record["checkpoint"] if record["checkpoint"] else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadUsage(
            f"{folder / name} is damaged: {error}", f"rl-cli runs resume {folder.name} writes it anew"
        ) from None
    if not isinstance(attempt, int) or not isinstance(step, int):
        raise BadUsage(f"{folder / name} is damaged: attempt and step must be numbers")
    return Resume(attempt, checkpoint, step, changes)


def with_changes(values: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A config's values with dotted fields changed, in place."""
    if changes:
        from rl_cli.config.fields import put

        for field, value in changes.items():
            put(values, field, value)
    return values
