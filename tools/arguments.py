"""What a model wrote as arguments, to the values a tool takes. Nothing is guessed: what is wrong is said."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rl_cli.core.cuts import head
from rl_cli.core.errors import nearest
from rl_cli.core.redaction import MASK, redact_text
from tools.spec import ToolError, ToolSpec

SHOWN = 60
"""Characters of a wrong value that an error repeats."""


def read_arguments(spec: ToolSpec, arguments: str | dict[str, Any] | None) -> dict[str, Any]:
    """The validated arguments of a call, by parameter name, with defaults filled in.

    Args:
        spec: The tool.
        arguments: A dict, JSON text of an object, or nothing: None, "", "null".

    Raises:
        ToolError: They are no JSON object or do not fit; says what to mend.
    """
    text = _as_json(_as_dict(spec, arguments))
    try:
        checked = spec.model.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise _invalid(spec, error) from None
    return {field.alias or name: getattr(checked, name) for name, field in spec.model.model_fields.items()}


def signature(spec: ToolSpec) -> str:
    """The parameters in one line: `name(a: string, b: integer = 3)`."""
    required = spec.parameters.get("required", [])
    parts = []
    for name, schema in spec.parameters["properties"].items():
        default = "" if name in required else f" = {json.dumps(schema.get('default'), ensure_ascii=False)}"
        parts.append(f"{name}: {_type_name(schema)}{default}")
    return f"{spec.name}({', '.join(parts)})"


def _as_dict(spec: ToolSpec, arguments: str | dict[str, Any] | None) -> dict[str, Any]:
    value: Any = arguments
    if isinstance(arguments, str):
        value = _parse(spec, arguments) if arguments.strip() else None
    if value is None:
        return {}
    if not isinstance(value, dict):
        kind = {str: "text", list: "a list", bool: "a boolean"}.get(type(value), "a number")
        message = f"the arguments must be a JSON object, not {kind}: {_shown(value)}"
        raise ToolError("invalid_arguments", message, f"call {signature(spec)}")
    return value


def _parse(spec: ToolSpec, text: str) -> Any:
    hint = f'send one JSON object, like {{"name": "value"}}, for {signature(spec)}'
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        near = _shown(_near(text, error.pos))
        message = f"the arguments are not JSON: {error.msg} at character {error.pos}, near {near}"
        raise ToolError("invalid_arguments", message, hint) from None
    except RecursionError:
        raise ToolError("invalid_arguments", "the arguments are nested too deeply", hint) from None
    except ValueError as error:  # a duplicate name, NaN, a number of thousands of digits
        raise ToolError("invalid_arguments", f"the arguments are not usable: {error}", hint) from None


def _near(text: str, at: int) -> str:
    """What stands around a place in a text, after its secrets were masked."""
    before, masked = redact_text(text[:at]), redact_text(text)
    if not masked.startswith(before):  # the place is within a secret
        return MASK
    return masked[max(0, len(before) - SHOWN // 2) : len(before) + SHOWN // 2]


def _as_json(arguments: dict[str, Any]) -> bytes:
    try:
        return json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        message = "the arguments hold half of a surrogate pair, which is no character"
    except RecursionError:
        message = "the arguments are nested too deeply"
    except (ValueError, TypeError) as error:
        message = f"the arguments hold something that JSON cannot: {error}"
    raise ToolError("invalid_arguments", message, "send plain JSON values")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{_shown(twice)} is given twice")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _invalid(spec: ToolSpec, error: ValidationError) -> ToolError:
    details = error.errors(include_url=False)
    lines = [_explain(spec, detail) for detail in details[:5]]
    if len(details) > 5:
        lines.append(f"and {len(details) - 5} more")
    return ToolError("invalid_arguments", "; ".join(lines), f"call {signature(spec)}")


def _explain(spec: ToolSpec, detail: ErrorDetails) -> str:
    where = ".".join(map(str, detail["loc"]))
    name = _shown(where)
    if detail["type"] == "missing":
        return f"missing argument {name}"
    if detail["type"] == "extra_forbidden":
        close = nearest(where[:100], list(spec.parameters["properties"]))
        return f"unknown argument {name}" + (f", did you mean {' or '.join(close)}?" if close else "")
    if detail["type"] == "json_invalid":
        return "the arguments are nested too deeply"
    message = detail["msg"].replace("Input should be", "must be")
    return f"{name} {message}, not {_shown(detail['input'])}"


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (ValueError, RecursionError, TypeError):
        text = type(value).__name__
    return head(text, SHOWN, "...")


def _type_name(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type_name(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(json.dumps(option) for option in schema["enum"])
    return str(schema.get("type") or schema.get("$ref", "any").rpartition("/")[2])
