"""The lines of a ledger as readers take them: at any moment, after any crash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

from rl_cli.core.files import open_regular
from rl_cli.core.json_text import parse_json
from rl_cli.data.rows import Row

KEY = re.compile(r"[0-9a-f]{32}-(0|[1-9][0-9]{0,8})-(0|[1-9][0-9]{0,3})")
"""HASH-OCCURRENCE-SAMPLE."""


ROW_FIELDS = {
    "messages": list,
    "tools": list,
    "usage": dict,
    "tool_stats": dict,
    "reasoning": dict,
    "marks": list,
    "metadata": dict,
}
"""What readers look into."""
COUNTS = {
    "usage": ("input_tokens", "output_tokens", "cached_tokens", "requests"),
    "reasoning": ("turns", "with"),
}
CALL_COUNTS = ("count", "success", "failure")
"""Of each tool in `tool_stats`."""
MOST = 10**15
"""No count, price or score of one sample is beyond it."""


class Entry(TypedDict):
    """How one sample of an item ended."""

    key: str
    state: Literal["done", "failed", "open"]
    """open: it has to be asked again, and this was paid for until then."""
    reason: str | None
    """Why it failed or is open, in a word or two that can be counted."""
    error: NotRequired[str]
    """The last error, in one line; not of a done one."""
    attempts: int
    row: Row | None
    """Of one that is not done: what there was of it, if anything was paid for."""


@dataclass
class Damage:
    """What a reader passed over."""

    lines: int = 0
    """Whole lines that hold no entry."""
    unfinished: int = 0
    """Bytes of a last line that has no end: it is being written, or a crash tore it."""


def read_entries(path: Path, damage: Damage, end: int | None = None) -> Iterator[tuple[int, Entry]]:
    """(byte at which its line begins, entry) for each whole line; nothing where there is no file.

    Args:
        path: The ledger.
        damage: Gets what is passed over.
        end: Take no line that begins at this byte or behind it.

    Raises:
        OSError: The file cannot be read.
    """
    try:
        file = open_regular(path)
    except FileNotFoundError:
        return
    with file:
        at = 0
        for line in file:
            if end is not None and at >= end:
                return
            if not line.endswith(b"\n"):
                damage.unfinished = len(line)
            elif (entry := parse_entry(line)) is not None:
                yield at, entry
            elif line.strip():
                damage.lines += 1
            at += len(line)


def parse_entry(line: bytes) -> Entry | None:
    """The entry that a line holds; None if it holds none."""
    try:
        value = parse_json(line.decode())
    except ValueError:
        return None
    if not isinstance(value, dict) or not KEY.fullmatch(str(value.get("key"))):
        return None
    row = value.get("row")
    if value.get("state") not in ("done", "failed", "open") or not isinstance(row, dict | None):
        return None
    if value["state"] != "failed" and row is None:
        return None
    if not isinstance(value.get("reason"), str | None) or (row is not None and not _is_row(row)):
        return None
    return cast(Entry, {"reason": None, "attempts": 0, **value, "row": row})


def _is_row(row: dict[str, Any]) -> bool:
    """Whether readers find what they look for. Fields that they do not know may hold anything."""
    if not all(isinstance(row.get(name), kind) for name, kind in ROW_FIELDS.items()):
        return False
    counted = [(row[field], names) for field, names in COUNTS.items()]
    for stats in row["tool_stats"].values():
        if not isinstance(stats, dict):
            return False
        counted.append((stats, CALL_COUNTS))
    return (
        all(_is_count(counts.get(name, 0)) for counts, names in counted for name in names)
        and all(isinstance(mark, str) for mark in row["marks"])
        and all(_is_tool(tool) for tool in row["tools"])
        and all(_is_figure(row.get(name)) for name in ("cost_usd", "score"))
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value <= MOST


def _is_figure(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and -MOST <= value <= MOST)


def _is_tool(tool: Any) -> bool:
    function = tool.get("function") if isinstance(tool, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)
