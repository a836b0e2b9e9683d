"""Canonical rows as columns: a field that they have not, or in another type, goes to `others`."""

from __future__ import annotations

from typing import Any

from rl_cli.data.errors import Unconvertible
from rl_cli.data.export.schema import CANONICAL, checked


def to_columns(row: dict[str, Any]) -> dict[str, Any]:
    known = {name: value for name, value in row.items() if name != "others" and _fits(name, value)}
    others = {name: value for name, value in row.items() if name not in known}
    return {**known, "others": others or None}


def _fits(name: str, value: Any) -> bool:
    if name not in CANONICAL:
        return False
    try:
        checked(name, value, CANONICAL[name])
    except Unconvertible:
        return False
    return True
