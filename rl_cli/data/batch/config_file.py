"""A batch's settings from a YAML file and flags, every mistake named at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rl_cli.config.fields import section_of
from rl_cli.config.yaml_text import read_yaml
from rl_cli.core.errors import BadUsage, did_you_mean
from rl_cli.core.handwritten import short
from rl_cli.data.batch.config import BatchConfig

INSTEAD = {"toolsets": "distribution", "distribution": "toolsets"}
"""A flag for the one goes before a file's value for the other."""


def load_config(file: Path | None, flags: Mapping[str, Any]) -> BatchConfig:
    """The file's settings, with those that flags give over them.

    Args:
        file: YAML. Its `input`, if that is a file, is looked for beside it.
        flags: Dotted field -> value; None counts as not given.

    Raises:
        BadUsage: With every problem in one line; an unknown field with the nearest names.
    """
    values = read_yaml(file) if file else {}
    given = {field: value for field, value in flags.items() if value is not None}
    if file and isinstance(found := values.get("input"), str) and (file.parent / found).exists():
        values["input"] = str((file.parent / found).absolute())
    for field in given:
        values.pop(INSTEAD.get(field, ""), None)
    for field, value in given.items():
        section, _, name = field.rpartition(".")
        if section and not isinstance(values.get(section), dict):
            values[section] = {}
        (values[section] if section else values)[name] = value
    return checked(values, str(file) if file else None)


def checked(values: Mapping[str, Any], source: str | None = None) -> BatchConfig:
    """The settings that a mapping holds; a file that is there is named by its whole path.

    Raises:
        BadUsage: As load_config().
    """
    try:
        config = BatchConfig.model_validate(dict(values))
    except ValidationError as error:
        problems = "; ".join(dict.fromkeys(_explained(error)))
        raise BadUsage(f"{source}: {problems}" if source else problems) from error
    path = Path(config.input).expanduser()
    return config.model_copy(update={"input": str(path.absolute())}) if path.exists() else config


def _explained(error: ValidationError) -> list[str]:
    problems = []
    for item in error.errors(include_url=False)[:20]:
        field = short(".".join(str(part) for part in item["loc"]))
        if item["type"] == "extra_forbidden":
            problems.append(f"there is no field {field} ({_nearest(item['loc'])})")
        elif item["type"] == "missing":
            problems.append(f"{field} is missing")
        elif not field:
            problems.append(str(item["ctx"]["error"]))
        else:
            message = item["msg"].removeprefix("Input ").removeprefix("Value error, ")
            shown = "null" if item["input"] is None else short(repr(item["input"]))
            problems.append(f"{field} {message[:1].lower()}{message[1:]}, not {shown}")
    return problems


def _nearest(place: tuple[int | str, ...]) -> str:
    """A hint with the fields that look like an unknown one, of the section where it stands."""
    *sections, name = map(str, place)
    model: Any = BatchConfig
    for part in sections:
        model = section_of(model.model_fields[part].annotation) or model
    return did_you_mean(name, list(model.model_fields))
