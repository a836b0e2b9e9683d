"""Plain JSON held against the TypedDicts of an SDK: nothing missing, unknown or of another type."""

from __future__ import annotations

import collections.abc
import types
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from typing_extensions import get_type_hints, is_typeddict

_LISTS = (list, collections.abc.Iterable, collections.abc.Sequence)
_WRAPPERS = (Required, NotRequired)


def problems(value: Any, expected: Any, at: str = "", allowed: frozenset[str] = frozenset()) -> list[str]:
    """What is wrong with `value`, one line each; empty where it fits.

    Args:
        expected: A TypedDict or any type that it is made of.
        allowed: Keys that may be in any object although the type does not know them.
    """
    origin = get_origin(expected)
    if expected is Any or expected is object:
        return []
    if origin in _WRAPPERS or origin is Annotated:
        return problems(value, get_args(expected)[0], at, allowed)
    if origin is Union or origin is types.UnionType:
        return _union(value, get_args(expected), at, allowed)
    if origin is Literal:
        return [] if value in get_args(expected) else [f"{at}: {value!r} is none of {get_args(expected)}"]
    if is_typeddict(expected):
        return _object(value, expected, at, allowed)
    if origin in _LISTS:
        if not isinstance(value, list):
            return [f"{at}: expected a list, got {_name(value)}"]
        (item,) = get_args(expected)
        return [p for i, v in enumerate(value) for p in problems(v, item, f"{at}.{i}", allowed)]
    if origin is dict:
        if not isinstance(value, dict):
            return [f"{at}: expected an object, got {_name(value)}"]
        return [p for k, v in value.items() for p in problems(v, get_args(expected)[1], f"{at}.{k}", allowed)]
    return [] if _plain(value, expected) else [f"{at}: expected {_type_name(expected)}, got {_name(value)}"]


def _object(value: Any, expected: Any, at: str, allowed: frozenset[str]) -> list[str]:
    if not isinstance(value, dict):
        return [f"{at}: expected an object, got {_name(value)}"]
    hints, dot = _hints(expected), f"{at}." if at else ""
    missing = [f"{dot}{key}: missing" for key in sorted(expected.__required_keys__ - value.keys())]
    config = getattr(expected, "__pydantic_config__", {})
    extra = {} if config.get("extra") == "allow" else value.keys() - hints.keys() - allowed
    unknown = [f"{dot}{key}: unknown key" for key in sorted(extra)]
    inner = [p for k, v in value.items() if k in hints for p in problems(v, hints[k], f"{dot}{k}", allowed)]
    return missing + unknown + inner


def _union(value: Any, members: tuple[Any, ...], at: str, allowed: frozenset[str]) -> list[str]:
    """The member that fits; else what is wrong with the one that came nearest."""
    members = tuple(m for m in members if not (isinstance(m, type) and hasattr(m, "model_fields")))
    if not members:  # the SDK's own answer objects, which JSON never is
        return [f"{at}.type: none of the kinds that can be sent"]
    tried = [problems(value, member, at, allowed) for member in members]
    ranked = sorted(
        zip(tried, members, strict=True), key=lambda t: (_distance(t[0], t[1], value, at), len(t[0]))
    )
    return ranked[0][0]


def _distance(found: list[str], member: Any, value: Any, at: str) -> int:
    """0 fits, 1 the right kind of object with faults, 2 something else."""
    if not found:
        return 0
    tags = [f"{at}.{tag}: " for tag in ("type", "role")]
    same_kind = isinstance(value, dict) == is_typeddict(member) and isinstance(value, list) == (
        get_origin(member) in _LISTS
    )
    return 1 if same_kind and not any(f.startswith(t) for f in found for t in tags) else 2


def _plain(value: Any, expected: Any) -> bool:
    if expected is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if expected is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if expected in (None, type(None)):
        return value is None
    return isinstance(value, expected)


@cache
def _hints(expected: Any) -> dict[str, Any]:
    return get_type_hints(expected, include_extras=True)


def _name(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def _type_name(expected: Any) -> str:
    return getattr(expected, "__name__", str(expected))
