"""Dividing a JSONL file into the lines that stay and those that go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rl_cli.core.files import open_regular
from rl_cli.core.json_text import load_json


def cut_lines(path: Path, keeps: Callable[[dict[str, Any]], bool]) -> tuple[list[bytes], list[bytes]]:
    """(lines that stay, lines that go), each with its newline; a torn line goes. ([], []) without a file."""
    kept: list[bytes] = []
    cut: list[bytes] = []
    lines = lines_of(path)
    for line in lines:
        try:
            row = load_json(line)
        except ValueError:
            row = None
        whole = isinstance(row, dict) and line.endswith(b"\n")
        (kept if whole and keeps(row) else cut).append(line if line.endswith(b"\n") else line + b"\n")
    return kept, cut


def lines_of(path: Path) -> list[bytes]:
    """The lines of a file, each as it ends; none if it is missing."""
    try:
        with open_regular(path) as file:
            return file.read().splitlines(keepends=True)
    except FileNotFoundError:
        return []
