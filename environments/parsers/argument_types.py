"""The type of an argument that a grammar writes as bare text, by the tool's JSON schema.

What the schema does not know stays text, and so does what does not fit its types: `seven` for an integer.
Several types are tried from the narrowest to the widest: null, integer, number, boolean, object, array,
string. Nothing is ever evaluated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from environments.parsers.json_value import strict_json

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": "true", "false": "false", "1": "true", "0": "false"}
_ALIASES = {
    "int": "integer",
    "int32": "integer",
    "int64": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "str": "string",
    "text": "string",
    "enum": "string",
    "bool": "boolean",
    "dict": "object",
    "map": "object",
    "list": "array",
    "tuple": "array",
    "none": "null",
}
_ORDER = ("null", "integer", "number", "boolean", "object", "array", "string")
ANY = frozenset(_ORDER)
TEXT = frozenset({"string"})
_DEEPEST = 20
"""Levels of anyOf, oneOf, allOf, $ref that are looked into."""


def types_of(schema: Mapping[str, Any] | None, name: str) -> frozenset[str]:
    """The JSON types that the parameter `name` may have; empty where the schema does not say.

    Args:
        schema: Of the tool's parameters; None where the tool is not known.
    """
    root = schema or {}
    seen: set[str] = set()
    properties = root.get("properties")
    if properties is None:
        referred = _referred(root, root, seen)
        properties = referred.get("properties") if isinstance(referred, Mapping) else None
    parameter = properties.get(name) if isinstance(properties, Mapping) else None
    return frozenset(_types(parameter, root, seen, _DEEPEST))


def stays_text(types: frozenset[str]) -> bool:
    """Whether a value of one of these types is its text, whatever it says."""
    return not types or types == TEXT


def json_of(text: str, types: frozenset[str]) -> str:
    """The value as JSON text."""
    if stays_text(types):
        return json.dumps(text, ensure_ascii=False)
    bare = text.strip()
    for kind in _ORDER:
        # 5.0 is an integer only where it can be no number
        fits = kind in types and not (kind == "integer" and "number" in types)
        if fits and (value := _as(kind, bare)):
            return value
    return json.dumps(text, ensure_ascii=False)


def number_text(text: str) -> str:
    """A number as JSON writes it; empty where the text is none."""
    if _INTEGER.fullmatch(text):
        return _plain_integer(text)
    return _plain_number(text) if _NUMBER.fullmatch(text) else ""


def _as(kind: str, text: str) -> str:
    """The value of that type as JSON text; empty where the text is none."""
    if kind == "null":
        return "null" if text.lower() == "null" else ""
    if kind == "integer":
        return _plain_integer(text) if _INTEGER.fullmatch(text) else _whole_number(text)
    if kind == "number":
        return number_text(text)
    if kind == "boolean":
        return _BOOLEANS.get(text.lower(), "")
    if kind in ("object", "array"):
        return (strict_json(text) or "") if text.startswith("{" if kind == "object" else "[") else ""
    return ""


def _plain_integer(text: str) -> str:
    sign = "-" if text.startswith("-") else ""
    return sign + (text.lstrip("+-").lstrip("0") or "0")


def _whole_number(text: str) -> str:
    """An integer written with a fraction of nothing, such as 5.0."""
    whole, dot, fraction = text.partition(".")
    return (
        _plain_integer(whole)
        if dot and _INTEGER.fullmatch(whole) and not fraction.strip("0") and fraction
        else ""
    )


def _plain_number(text: str) -> str:
    """As JSON writes it: digits on both sides of the point, no plus sign, no leading zeros."""
    number, letter, power = text.lower().partition("e")
    whole, _, fraction = number.partition(".")
    number = _plain_integer(whole or "0") if whole.strip("+-") else ("-0" if whole.startswith("-") else "0")
    return number + (f".{fraction}" if fraction else "") + (f"e{power}" if letter else "")


def _referred(schema: Mapping[str, Any], root: Any, seen: set[str]) -> Any:
    """What the schema's `$ref` into `root` stands for; None where it has none, or it is `seen` already."""
    ref = schema.get("$ref")
    if not isinstance(ref, str) or not ref.startswith("#/") or ref in seen:
        return None
    seen.add(ref)
    for part in ref.removeprefix("#/").split("/"):
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        root = root.get(key) if isinstance(root, Mapping) else None
    return root


def _types(schema: Any, root: Mapping[str, Any], seen: set[str], depth: int) -> Iterator[str]:
    if not isinstance(schema, Mapping) or not depth:
        return
    named = schema.get("type")
    for kind in named if isinstance(named, list) else [named]:
        if isinstance(kind, str):
            name = kind.strip().lower()
            name = _ALIASES.get(name, name)
            yield name if name in _ORDER else "string"
    if "$ref" in schema:
        yield from _types(_referred(schema, root, seen), root, seen, depth - 1)
    elif named is None:
        yield from _types_of_values(schema)
    for word in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(word) or () if isinstance(schema.get(word), list) else ():
            yield from _types(part, root, seen, depth - 1)


def _types_of_values(schema: Mapping[str, Any]) -> Iterator[str]:
    """The types of the values that an enum or a const names."""
    values = schema.get("enum")
    for value in [
        *(values if isinstance(values, list) else []),
        *([schema["const"]] if "const" in schema else []),
    ]:
        yield _type_of(value)


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, Mapping):
        return "object"
    return "array" if isinstance(value, list) else "string"
