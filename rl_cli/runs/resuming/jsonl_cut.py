"""Dividing a JSONL file into the lines that stay and those that go."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def cut_lines(path: Path, keeps: Callable[[dict[str, Any]], bool]) -> tuple[list[bytes], list[bytes]]:
    """(lines that stay, lines that go), each with its newline; a torn line goes. ([], []) without a file."""
    kept: list[bytes] = []
    cut: list[bytes] = []
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    for line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        whole = isinstance(row, dict) and line.endswith(b"\n")
        (kept if whole and keeps(row) else cut).append(line if line.endswith(b"\n") else line + b"\n")
    return kept, cut
