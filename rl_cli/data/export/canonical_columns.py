"""Canonical rows as columns: fields that the canonical row does not know go to `others`."""

from __future__ import annotations

from typing import Any

from rl_cli.data.export.schema import CANONICAL


def to_columns(row: dict[str, Any]) -> dict[str, Any]:
    known = {name: value for name, value in row.items() if name in CANONICAL and name != "others"}
    others = {name: value for name, value in row.items() if name not in known}
    return {**known, "others": others or None}
