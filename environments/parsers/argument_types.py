"""The type of an argument that a grammar writes as bare text, by the tool's JSON schema.

What the schema does not know stays text, and so does what does not fit its types: `seven` for an integer.
Several types are tried from the narrowest to the widest: null, integer, number, boolean, object, array,
string. Nothing is ever evaluated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Set
from functools import cached_property
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
_LONGEST_CHAIN = 100
"""References."""
ANY = frozenset(_ORDER)
TEXT = frozenset({"string"})


class ParameterTypes:
    """The JSON types that the parameters of a tool may have.

    Args:
        schema: JSON schema of its parameters, an object; None where the tool is not known.
    """

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._root: Mapping[str, Any] = schema or {}
        self._known: dict[tuple[str, ...], frozenset[str]] = {}
        self._of_lists: dict[int, frozenset[str]] = {}
        self._of_schemas: dict[int, frozenset[str]] = {}

    def of(self, *path: str) -> frozenset[str]:
        """Those of a parameter, or of what stands in it; empty where the schema does not say.

        Args:
            path: The parameter's name, then keys of objects; "" or "item" for an array.
        """
        if path not in self._known:
            schemas = [self.properties.get(path[0])] if path else []
            for key in path[1:]:
                schemas = [inner for schema in schemas for inner in self._inside(schema, key)]
            self._known[path] = frozenset().union(*map(self._of_schema, schemas))
        return self._known[path]

    @cached_property
    def properties(self) -> Mapping[str, Any]:
        """The schema of each parameter, by name."""
        schema: Any = self._root
        seen: set[int] = set()
        while isinstance(schema, Mapping) and id(schema) not in seen:
            seen.add(id(schema))
            if schema.get("properties") is not None:
                found = schema["properties"]
                return found if isinstance(found, Mapping) else {}
            schema = self._referred(schema)
        return {}

    def takes(self, keys: Set[str]) -> bool:
        """Whether a call may have just these arguments."""
        required = self._root.get("required")
        needed = required if isinstance(required, list) else []
        return keys <= self.properties.keys() and keys >= {str(key) for key in needed}

    def _of_schema(self, schema: Any) -> frozenset[str]:
        for _ in range(_LONGEST_CHAIN):  # many parameters may refer to one schema
            if not isinstance(schema, Mapping) or schema.keys() != {"$ref"}:
                break
            schema = self._referred(schema)
        if id(schema) not in self._of_schemas:
            self._of_schemas[id(schema)] = frozenset().union(*map(self._own_types, self._parts(schema)))
        return self._of_schemas[id(schema)]

    def _parts(self, schema: Any) -> Iterator[Mapping[str, Any]]:
        """A schema, and those that it refers to or is composed of, each once."""
        to_read, seen = [schema], set[int]()
        while to_read:
            one = to_read.pop()
            if not isinstance(one, Mapping) or id(one) in seen:
                continue
            seen.add(id(one))
            yield one
            if "$ref" in one:
                to_read.append(self._referred(one))
            for word in ("anyOf", "oneOf", "allOf"):
                parts = one.get(word)
                to_read += parts if isinstance(parts, list) else []

    def _inside(self, schema: Any, key: str) -> Iterator[Any]:
        """The schemas of what stands in an object under a key, or in an array."""
        for one in self._parts(schema):
            properties = one.get("properties")
            if isinstance(properties, Mapping) and key in properties:
                yield properties[key]
            elif key in ("", "item") and "items" in one:
                yield one["items"]
            elif "additionalProperties" in one:
                yield one["additionalProperties"]

    def _own_types(self, schema: Mapping[str, Any]) -> frozenset[str]:
        """The types that a schema itself names."""
        named = schema.get("type")
        kinds = self._each(named, _named) if isinstance(named, list) else frozenset[str]()
        if isinstance(named, str):
            kinds = frozenset({_named(named)})
        if named is None and "$ref" not in schema:
            values = schema.get("enum")
            kinds = self._each(values, _type_of) if isinstance(values, list) else kinds
            kinds |= {_type_of(schema["const"])} if "const" in schema else set()
        return kinds | {"null"} if kinds and schema.get("nullable") is True else kinds

    def _each(self, values: list[Any], kind: Callable[[Any], str]) -> frozenset[str]:
        """Of a list; many parameters may share a long one."""
        if id(values) not in self._of_lists:
            self._of_lists[id(values)] = frozenset(map(kind, values))
        return self._of_lists[id(values)]

    def _referred(self, schema: Mapping[str, Any]) -> Any:
        """What the schema's `$ref` stands for; None where it has none that can be followed."""
        ref = schema.get("$ref")
        if not isinstance(ref, str) or not ref.startswith("#/"):
            return None
        found: Any = self._root
        for part in ref.removeprefix("#/").split("/"):
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        return found


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


def _named(kind: Any) -> str:
    name = str(kind).strip().lower()
    name = _ALIASES.get(name, name)
    return name if name in _ORDER else "string"


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
