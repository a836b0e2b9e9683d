"""The config tree as dotted fields, and what pydantic says of a value put into a person's words."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from rl_cli.config.tree import RunConfig
from rl_cli.config.yaml_text import parse_assignment
from rl_cli.core.errors import BadUsage, did_you_mean, nearest
from rl_cli.core.handwritten import short

OPTIONS = "environment.options"
MOST_FIELDS = 1000
"""That a file or a call may set."""
MOST_PROBLEMS = 20
"""That one message names."""


def section_of(annotation: Any) -> type[BaseModel] | None:
    """The section class that a field holds (also where null is allowed), or None for a single value."""
    choices = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    return next((c for c in choices if isinstance(c, type) and issubclass(c, BaseModel)), None)


def _walk(
    model: type[BaseModel], prefix: str = ""
) -> Iterator[tuple[str, FieldInfo, type[BaseModel] | None]]:
    for name, info in model.model_fields.items():
        section = section_of(info.annotation)
        yield prefix + name, info, section
        if section:
            yield from _walk(section, f"{prefix}{name}.")


FIELDS: dict[str, str] = {
    name: info.description or "" for name, info, section in _walk(RunConfig) if not section
}
"""Every dotted field that holds a value, with its one line of documentation."""
SECTIONS: frozenset[str] = frozenset(name for name, _, section in _walk(RunConfig) if section)
_OPTIONAL_SECTIONS = frozenset(
    name for name, info, section in _walk(RunConfig) if section and section is not info.annotation
)


def flatten(config: RunConfig) -> dict[str, Any]:
    """{dotted field: value} in the order of the tree; options one by one, an absent section as None."""
    flat: dict[str, Any] = {}

    def visit(values: dict[str, Any], prefix: str) -> None:
        for name, value in values.items():
            field = prefix + name
            if isinstance(value, dict) and (field in SECTIONS or field == OPTIONS):
                visit(value, field + ".")
            else:
                flat[field] = value

    visit(config.model_dump(), "")
    return flat


def spread(values: dict[str, Any]) -> dict[str, Any]:
    """Dotted and nested fields mixed -> dotted ones only: {"grpo": {"steps": 4}} -> {"grpo.steps": 4}.

    An empty mapping for a section that may be absent stays: it asks for that section with its defaults.

    Raises:
        BadUsage: A field is given twice, with different values.
    """
    return _spread(values.items())


def read_assignments(texts: Iterable[str]) -> dict[str, Any]:
    """The changes that several `--set FIELD=VALUE` ask for, as dotted fields.

    Raises:
        BadUsage: One is malformed, or a field is given twice with different values.
    """
    return _spread(map(parse_assignment, texts))


def _spread(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    flat: dict[str, Any] = {}

    def visit(pairs: Iterable[tuple[str, Any]], prefix: str) -> None:
        for name, value in pairs:
            field = f"{prefix}{name}"
            if isinstance(value, dict) and (field in SECTIONS or field == OPTIONS):
                if not value and field in _OPTIONAL_SECTIONS and flat.get(field) is None:
                    note(field, {})
                visit(value.items(), field + ".")
            else:
                note(field, value)

    def note(field: str, value: Any) -> None:
        if field in flat and (flat[field] != value or type(flat[field]) is not type(value)):
            was, now = _short(flat[field]), _short(value)
            raise BadUsage(f"{short(field)} is given twice, as {was} and as {now}", "leave one out")
        for section in _OPTIONAL_SECTIONS:
            if field == section and value is None:
                part = next((name for name in flat if name.startswith(section + ".")), None)
            else:
                part = field if field.startswith(section + ".") and flat.get(section, {}) is None else None
            if part:
                raise BadUsage(f"{section} is given as null, and {short(part)} is given too", "leave one out")
        if len(flat) >= MOST_FIELDS:
            raise BadUsage(f"there are more than {MOST_FIELDS} fields", "see docs/formats.md, run.yaml")
        flat[field] = value

    visit(pairs, "")
    return flat


def put(tree: dict[str, Any], field: str, value: Any) -> None:
    """Sets a dotted field in a nested dict, making the sections on the way; {} leaves a section as it is."""
    *path, last = field.split(".")
    for name in path:
        if not isinstance(tree.get(name), dict):
            tree[name] = {}
        tree = tree[name]
    if not (value == {} and field in SECTIONS and isinstance(tree.get(last), dict)):
        tree[last] = value


def overlap(field: str, other: str) -> bool:
    """Is one of two dotted fields the other, or a part of it?"""
    return (field + ".").startswith(other + ".") or (other + ".").startswith(field + ".")


def unknown_field(field: str) -> str:
    """One line about a field that does not exist: the nearest names, the same word elsewhere first."""
    field = short(field)
    last = field.rpartition(".")[2]
    same_word = [known for known in FIELDS if known.rpartition(".")[2] == last]
    close = [*same_word, *(name for name in nearest(field, tuple(FIELDS)) if name not in same_word)][:3]
    hint = f"did you mean {' or '.join(close)}?" if close else did_you_mean(field, tuple(sorted(SECTIONS)))
    return f"there is no field {field} ({hint})"


def explain(error: ValidationError) -> list[tuple[str, str]]:
    """Returns (dotted field, one line) for each problem; the field is "" for a rule across fields."""
    problems = []
    for item in error.errors(include_url=False)[:MOST_PROBLEMS]:
        field = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            problems.append((field, unknown_field(field)))
        elif item["type"] == "missing":
            problems.append((field, f"{field} is missing"))
        elif item["type"] == "model_type":
            problems.append((field, f"{field} is a section: set its fields, such as {_first(field)}"))
        elif item["type"] == "value_error" and not field:
            problems += [("", text) for text in str(item["ctx"]["error"]).split("; ")]
        else:
            message = item["msg"].removeprefix("Input ").removeprefix("Value error, ")
            problems.append((field, f"{field} {message}, not {_short(item['input'])}"))
    return problems


def _first(section: str) -> str:
    return next((name for name in FIELDS if name.startswith(section + ".")), section)


def _short(value: Any) -> str:
    return short("null" if value is None else repr(value))
