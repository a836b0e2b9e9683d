"""From a typed, documented function to the JSON schema of its arguments and the model that validates them."""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.json_schema import GenerateJsonSchema

from rl_cli.core.errors import BadUsage
from tools.spec import CallContext

SECTION = re.compile(r"(Args|Arguments|Returns|Yields|Raises):\s*")
ARGUMENT = re.compile(r"(\w+)(?:\s*\([^)]*\))?:\s*(.*)")


class _Schema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def arguments_model(function: Callable[..., Any]) -> tuple[type[BaseModel], str | None]:
    """The model of a function's arguments, and the name of its CallContext parameter.

    Types come from the signature, descriptions from the docstring's "Args:" (Google style).

    Raises:
        TypeError: A parameter has no type, is variadic, or is described but does not exist.
    """
    name = getattr(function, "__name__", str(function))
    hints = typing.get_type_hints(function, localns={"CallContext": CallContext}, include_extras=True)
    _, described = read_docstring(function)
    fields: dict[str, Any] = {}
    context_parameter = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"tool {name}: parameter '{parameter.name}' must be a plain named one")
        if parameter.name not in hints:
            raise TypeError(f"tool {name}: parameter '{parameter.name}' has no type")
        if hints[parameter.name] is CallContext:
            context_parameter = parameter.name
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        # A neutral field name, since some parameters' names (json, copy, model_x) mean something to pydantic.
        fields[f"p{len(fields)}"] = (
            hints[parameter.name],
            Field(default, alias=parameter.name, description=described.pop(parameter.name, None)),
        )
    if described:
        raise TypeError(f"tool {name}: its docstring describes what it does not take: {', '.join(described)}")
    config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())
    return create_model(name, __config__=config, **fields), context_parameter


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model's fields under their aliases."""
    schema = model.model_json_schema(by_alias=True, schema_generator=_Schema)
    schema.pop("title", None)
    schema.setdefault("properties", {})
    return schema


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """A docstring's text before its sections, and what its "Args:" say about each parameter.

    Raises:
        TypeError: There is no docstring.
        BadUsage: Python was told to drop all of them.
    """
    if sys.flags.optimize > 1:
        raise BadUsage("Python dropped the docstrings of the tools", "unset PYTHONOPTIMIZE, leave out -OO")
    text = inspect.getdoc(function)
    if not text:
        raise TypeError(
            f"tool {getattr(function, '__name__', function)} has no docstring for the model to read"
        )
    lines = text.splitlines()
    sections = [i for i, line in enumerate(lines) if SECTION.fullmatch(line)]
    description = "\n".join(lines[: sections[0]] if sections else lines).strip()
    described: dict[str, str] = {}
    for start in sections:
        if lines[start].startswith("Arg"):
            described |= _read_arguments(lines[start + 1 :])
    return description, described


def _read_arguments(lines: list[str]) -> dict[str, str]:
    described: dict[str, str] = {}
    indent, name = 0, ""
    for line in lines:
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        if depth == 0:
            break
        indent = indent or depth
        match = ARGUMENT.fullmatch(line.strip()) if depth == indent else None
        if match:
            name = match[1]
            described[name] = match[2]
        elif name:
            described[name] = f"{described[name]} {line.strip()}".strip()
    return described
