"""The lines of the input files one after the other, with their places, in constant memory."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_cli.core.errors import BadUsage
from rl_cli.core.files import explain_os_error, open_regular

LONGEST_LINE = 64 * 2**20
"""Bytes. A longer one is passed over unread: a row takes some five times its length of memory."""

_OTHERS = (b"PAR1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""How Parquet, gzip and zstandard begin."""


@dataclass(frozen=True)
class Place:
    """A line among all the input's."""

    file: int = 0
    """Which of the files, from 0."""
    line: int = 0
    """From 1."""
    end: int = 0
    """The byte after it."""


@dataclass(frozen=True)
class Line:
    """A line that is not empty."""

    place: Place
    text: bytes
    """With the line break, as it stands there; empty if it is too long."""


def check_inputs(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """What the files are known by: path, size, time of the last change.

    Raises:
        BadUsage: One is missing, is no file, is no text, or is given twice.
    """
    found: dict[tuple[int, int], Path] = {}
    known = []
    for path in paths:
        try:
            with open_regular(path) as file:
                status = os.fstat(file.fileno())
                begin = file.read(4)
        except OSError as error:
            raise explain_os_error(error, path) from error
        if other := found.get((status.st_dev, status.st_ino)):
            raise BadUsage(
                f"{path} is the same file as {other}: its rows would be taken twice", "name it once"
            )
        if begin.startswith(_OTHERS):
            raise BadUsage(f"{path} is Parquet or compressed, not JSONL", "give its rows as JSON, one a line")
        found[status.st_dev, status.st_ino] = path
        known.append({"path": str(path.absolute()), "size": status.st_size, "mtime_ns": status.st_mtime_ns})
    return known


def lines(paths: Sequence[Path], after: Place) -> Iterator[Line]:
    """The lines that follow a place.

    Raises:
        OSError: As `open` does.
    """
    for number in range(after.file, len(paths)):
        place = after if number == after.file else Place(number)
        with open_regular(paths[number]) as file:
            file.seek(place.end)
            at, end = place.line, place.end
            while text := file.readline(LONGEST_LINE):
                at, end = at + 1, end + len(text)
                is_whole = text.endswith(b"\n") or len(text) < LONGEST_LINE
                while not text.endswith(b"\n") and (rest := file.readline(2**16)):
                    text, end = rest, end + len(rest)
                text = text.removeprefix(codecs.BOM_UTF8)
                if not is_whole or text.strip():
                    yield Line(Place(number, at, end), text if is_whole else b"")
