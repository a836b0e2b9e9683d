"""`rl-cli data show`: trajectories to read, in the terminal or as a page."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from rl_cli.cli.app import JsonOption
from rl_cli.cli.data_options import BadLines, ForceOption
from rl_cli.cli.output import print_json, say
from rl_cli.cli.pager import paged
from rl_cli.core.errors import BadUsage
from rl_cli.core.settings import home

MOST_IN_A_PAGE = 1000
LONGEST_NUMBER = 9
"""Digits of a row's number; more of them begin a key."""


def show_command(
    source: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A batch, or a JSONL file.")],
    row: Annotated[
        str | None,
        typer.Option("--row", metavar="N|KEY", help="Only this one: its number, or its key's beginning."),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="At most so many.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Show calls and results whole, not folded.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write one page with search and filters instead.")
    ] = None,
    force: ForceOption = False,
    json_: JsonOption = False,
) -> None:
    """Show trajectories: who said what, the calls and their results.

    In a terminal through $PAGER (less), with colours unless NO_COLOR is set; elsewhere as plain text. --html
    writes a file that needs nothing else (1,000 trajectories unless --limit says more).
    """
    from rl_cli.data.export.source import find_source

    bad = BadLines()
    found = find_source(source, home())
    rows = _chosen(enumerate(found.rows(bad), 1), row)
    if html is not None:
        shown = islice(rows, limit or MOST_IN_A_PAGE)
        count = _write_page(shown, found.name, html, force)
        if json_:
            print_json({"trajectories": count, "output": str(html)})
        else:
            more = "; --limit for more" if limit is None and count == MOST_IN_A_PAGE else ""
            say(f"{count} trajector{'y' if count == 1 else 'ies'}{more}: {html}")
    elif json_:
        for _, each in islice(rows, limit):
            print_json(each)
    else:
        _print(islice(rows, limit), full)
    bad.fail()


def _chosen(
    rows: Iterator[tuple[int, dict[str, Any]]], wanted: str | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    if wanted is None:
        yield from rows
        return
    by_number = wanted.isdecimal() and len(wanted) <= LONGEST_NUMBER
    found, number = False, 0
    for number, each in rows:
        if wanted == str(number) if by_number else str(each.get("key") or "").startswith(wanted):
            found = True
            yield number, each
            if by_number:
                return
    if not found:
        numbers = f"a number from 1 to {number:,}, or the beginning of a key"
        raise BadUsage(f"there is no row '{wanted}'", numbers if number else "there are no rows at all")


def _print(rows: Iterator[tuple[int, dict[str, Any]]], full: bool) -> None:
    from rl_cli.data.show.text import as_lines

    at_terminal = sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
    colour = at_terminal and not os.environ.get("NO_COLOR")
    lines = (line for number, each in rows for line in as_lines(each, number, colour, full))
    if at_terminal:
        paged(lines)
        return
    for line in lines:
        print(line)


def _write_page(rows: Iterator[tuple[int, dict[str, Any]]], name: str, target: Path, force: bool) -> int:
    from rl_cli.data.export.output import new_output
    from rl_cli.data.show.page import as_page

    last = 0

    def counted() -> Iterator[tuple[int, dict[str, Any]]]:
        nonlocal last
        for each in rows:
            last += 1
            yield each

    with new_output(target, folder=False, force=force) as path, path.open("x", encoding="utf-8") as file:
        for piece in as_page(counted(), name):
            file.write(piece)
    return last
