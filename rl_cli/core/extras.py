"""The optional parts of the installation: which packages they need, and how to install them."""

from __future__ import annotations

from importlib.util import find_spec

from rl_cli.core.errors import BadUsage

EXTRAS: dict[str, tuple[str, ...]] = {
    "train": ("torch", "transformers", "trl", "datasets", "peft", "accelerate"),
}
"""Name of the extra -> the modules that it brings."""


def missing_modules(extra: str) -> list[str]:
    """The modules of `extra` that are not installed. Imports none of them."""
    return [module for module in EXTRAS[extra] if find_spec(module) is None]


def install_command(extra: str) -> str:
    return f"pip install 'rl-flywheel[{extra}]'"


def explain_missing_module(error: ModuleNotFoundError) -> BadUsage | None:
    """The error as a person should read it, or None if the module belongs to no extra."""
    top = (error.name or "").partition(".")[0]
    for extra, modules in EXTRAS.items():
        if top in modules:
            return BadUsage(
                f"this needs {top}, which is not installed", f"install it: {install_command(extra)}"
            )
    return None
