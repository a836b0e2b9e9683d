"""The optional parts of the installation: which packages they need, and how to install them."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec

from rl_cli.core.errors import BadUsage

EXTRAS: dict[str, tuple[str, ...]] = {
    "train": ("torch", "transformers", "trl", "datasets", "peft", "accelerate"),
    "data": ("pyarrow", "pandas", "datasets", "datasketch"),
    "math": ("math_verify",),
    "web": ("trafilatura", "lxml_html_clean"),
    "browser": ("playwright",),
    "tokens": ("tokenizers", "tiktoken"),
    "modal": ("modal",),
    "daytona": ("daytona",),
}
"""Name of the extra -> the modules that it brings."""
TRL_SERIES = "1.16."
"""rollout_func is experimental in TRL; this series is the one that the adapter is tested with."""


def missing_modules(extra: str) -> list[str]:
    """The modules of `extra` that are not installed. Imports none of them."""
    return [module for module in EXTRAS[extra] if find_spec(module) is None]


def require_extra(extra: str) -> None:
    """Raises BadUsage naming the install command where a package of an extra is missing or too different."""
    if missing := missing_modules(extra):
        raise BadUsage(f"this needs {', '.join(missing)}: not installed", install_command(extra))
    if extra == "train" and not version("trl").startswith(TRL_SERIES):
        raise BadUsage(
            f"this needs trl {TRL_SERIES}*, and {version('trl')} is installed", install_command(extra)
        )


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
