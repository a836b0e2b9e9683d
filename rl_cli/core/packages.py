"""Is every import package ours? Other distributions ship packages of the same names."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from rl_cli.core.errors import BadUsage

PACKAGES = ("rl_cli", "tools", "environments", "prompts")
MARKER = ".rl-flywheel"


def check_packages() -> None:
    """Raises BadUsage if one of the four packages is shadowed by another distribution's or a local folder."""
    for name in PACKAGES:
        spec = find_spec(name)
        folders = list(spec.submodule_search_locations or []) if spec else []
        if not folders or not (Path(folders[0]) / MARKER).is_file():
            where = folders[0] if folders else "nowhere"
            raise BadUsage(
                f"the package '{name}' that Python finds ({where}) is not rl-flywheel's",
                "install it isolated: pipx install rl-flywheel, or uv tool install rl-flywheel",
            )
