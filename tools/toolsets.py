"""Named toolsets and the modules that define their tools, imported on demand; the list is toolsets.yaml."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from rl_cli.core.errors import BadUsage, did_you_mean
from rl_cli.core.handwritten import load_yaml, read_text


@dataclass(frozen=True)
class Toolset:
    """A named set of tools."""

    description: str = ""
    modules: tuple[str, ...] = ()
    operations: bool = False
    """Of the assistant: a rollout is never offered it."""
    unavailable: str | None = None
    """Why there are no such tools here, whatever the machine."""
    problem: str | None = None
    """Dotted name of a function that returns why the set cannot work on this machine, or None."""


def _shipped() -> dict[str, Toolset]:
    file = Path(__file__).with_name("toolsets.yaml")
    entries = load_yaml(read_text(file), file.name)
    return {
        name: Toolset(**{**entry, "modules": tuple(entry.get("modules", ()))})
        for name, entry in entries.items()
    }


TOOLSETS: dict[str, Toolset] = _shipped()

OPERATIONS = frozenset(name for name, toolset in TOOLSETS.items() if toolset.operations)
"""Toolsets of the assistant. A rollout is never offered them."""


def load_toolsets(names: Iterable[str]) -> None:
    """Imports the modules that define these toolsets.

    Raises:
        BadUsage: There is no such toolset (with the nearest names), or it is not implemented.
    """
    for name in names:
        if name not in TOOLSETS:
            raise unknown_toolset(name, list(TOOLSETS))
        if reason := TOOLSETS[name].unavailable:
            raise BadUsage(f"toolset '{name}' is unavailable: {reason}")
        for module in TOOLSETS[name].modules:
            import_module(module)


def implemented(operations: bool = True) -> tuple[str, ...]:
    """The names of the toolsets that have tools; with or without the assistant's own."""
    return tuple(
        name
        for name, toolset in TOOLSETS.items()
        if toolset.unavailable is None and (operations or not toolset.operations)
    )


def why_unavailable(name: str) -> str | None:
    """Why a toolset cannot be used on this machine, in one line; None where it can."""
    toolset = TOOLSETS[name]
    if toolset.unavailable or not toolset.problem:
        return toolset.unavailable
    module, _, function = toolset.problem.rpartition(".")
    ask: Callable[[], str | None] = getattr(import_module(module), function)
    return ask()


def unknown_toolset(name: str, known: list[str]) -> BadUsage:
    return BadUsage(f"unknown toolset '{name}'", did_you_mean(name, known))
