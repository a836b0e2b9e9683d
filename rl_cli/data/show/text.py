"""Trajectories as lines of text: a colour for each role, calls and results folded to a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.printable import printable
from rl_cli.data.show.entries import Entry, entries, facts

FOLDED = 100
"""Characters of a folded text."""
COLOURS = {
    "system": "2",
    "user": "36",
    "thinking": "2;3",
    "assistant": "32",
    "call": "33",
    "result": "35",
    "head": "1",
}
"""SGR codes (ECMA-48)."""


def as_lines(row: dict[str, Any], number: int, colour: bool, full: bool) -> Iterator[str]:
    """The lines of one trajectory, safe to print, an empty one last.

    Args:
        row: Canonical.
        number: Its place in the file, from 1.
        colour: Write escape sequences for colours.
        full: Write calls and results whole.
    """
    head = " · ".join([str(number), *(f"{name} {value}" for name, value in facts(row))])
    yield _painted(printable(" ".join(f"── {head}".split())), "head", colour)
    for entry in entries(row["messages"]):
        for line in _entry(entry, full):
            yield _painted(line, entry.role, colour)
    yield ""


def _entry(entry: Entry, full: bool) -> Iterator[str]:
    label = f"{entry.role:<10}"
    if entry.tool:
        name = printable(one_line(entry.tool, FOLDED))
        if not full:
            yield f"{label}{_folded(entry, name)}"
            return
        label += f"{name}: "
    lines = printable(entry.text).split("\n")
    yield f"{label}{lines[0]}"
    for line in lines[1:]:
        yield f"{'':<10}{line}"


def _folded(entry: Entry, name: str) -> str:
    text = printable(one_line(entry.text, FOLDED))
    if entry.role == "call":
        return f"{name}({text})"
    more = f" ({len(entry.text):,} characters)" if len(text) >= FOLDED or "\n" in entry.text.strip() else ""
    return f"{name}: {text}{more}"


def _painted(line: str, role: str, colour: bool) -> str:
    return f"\x1b[{COLOURS[role]}m{line}\x1b[0m" if colour and line.strip() else line
