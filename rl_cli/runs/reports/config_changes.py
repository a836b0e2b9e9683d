"""The config of a run beside what it started from, as text."""

from __future__ import annotations

from typing import Any

from rl_cli.core.errors import RlCliError
from rl_cli.runs.attempt_changes import as_text
from rl_cli.runs.run_dir import RunDir

Sections = dict[str, dict[str, tuple[str, str | None]]]


def config_against_profile(run: RunDir) -> Sections:
    """{section: {field: (value, the profile's default or None where there is none)}}, all as text."""
    try:
        now = flat_config(run)
    except (RlCliError, OSError, ValueError):  # a run.yaml of another version
        return {}
    start = _profile_defaults(run)
    sections: Sections = {}
    for field, value in now.items():
        section, _, name = field.partition(".")
        section, name = (section, name) if name else ("run", section)
        default = as_text(start[field]) if field in start else None
        sections.setdefault(section, {})[name] = (as_text(value), default)
    return sections


def flat_config(run: RunDir) -> dict[str, Any]:
    """{dotted field: value}."""
    from rl_cli.config.fields import flatten

    return flatten(run.config())


def _profile_defaults(run: RunDir) -> dict[str, Any]:
    from rl_cli.config.fields import flatten
    from rl_cli.config.profiles import load_profile
    from rl_cli.config.tree import RunConfig

    config = run.config()
    try:
        defaults = load_profile(config.profile).defaults
        given = {"profile": config.profile, "environment": config.environment.model_dump()}
        start = flatten(RunConfig.model_validate({**given, **defaults}))
    except (RlCliError, ValueError):  # a profile that no longer exists
        return {}
    return {field: value for field, value in start.items() if not field.startswith("environment.")}
