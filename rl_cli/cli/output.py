"""Printing: tables and text for people, JSON for programs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

from rl_cli.cli.wrapping import display_width, wrapped
from rl_cli.core.json_text import to_json
from rl_cli.core.printable import printable, printable_json
from rl_cli.core.redaction import redact_text, redacted_json

LONGEST_NAME = 40
"""Columns that names may take of every line."""


def say(text: str, error: bool = False) -> None:
    """Prints text for a person, whatever it holds; to stderr if it is an error or an aside."""
    stream, shown = sys.stderr if error else sys.stdout, printable(text)
    if stream.isatty():  # no word is broken at the edge
        shown = wrapped(shown, shutil.get_terminal_size().columns)
    print(shown, file=stream)


@contextmanager
def nothing_on_stdout() -> Iterator[None]:
    """What a person's own code prints meanwhile, also from a child of this process, goes to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def print_json(value: Any) -> None:
    """One JSON object on one line, with escapes for what a terminal would obey: a pipe may end at one."""
    print(printable_json(redacted_json(value)))


def print_json_lines(rows: Iterable[Any]) -> None:
    """One JSON object per line; nothing at all for no rows."""
    for row in rows:
        print_json(row)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], empty: str = "nothing to list"
) -> None:
    """A table with aligned columns.

    Args:
        columns: The heads.
        rows: One value per column; None is shown as "-", floats with 4 significant digits.
        empty: What to say, on stderr, if there are no rows.
    """
    body = [[cell(value) for value in row] for row in rows]
    if not body:
        print(empty, file=sys.stderr)
        return
    table = [list(columns), *body]
    widths = [max(display_width(row[i]) for row in table) for i in range(len(columns))]
    for row in table:
        padded = (text + " " * (width - display_width(text)) for text, width in zip(row, widths, strict=True))
        print("  ".join(padded).rstrip())


def print_fields(fields: dict[str, Any]) -> None:
    """One `name  value` line per field; a name beyond LONGEST_NAME moves nothing but its own value."""
    shown = [(cell(name), cell(value)) for name, value in fields.items()]
    widths = [display_width(name) for name, _ in shown]
    width = min(LONGEST_NAME, max(widths, default=0))
    for name, text in shown:
        print(f"{name}{' ' * (width - display_width(name))}  {text}")


def cell(value: Any) -> str:
    """A value as one line of text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(cell(v) for v in value) or "-"
    text = value if isinstance(value, str) else to_json(value) if isinstance(value, dict) else str(value)
    return printable(" ".join(redact_text(text).split()))
