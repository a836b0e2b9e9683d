"""Rows of text files: JSON lines, a JSON list, tables with a head."""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.errors import BadUsage
from rl_cli.core.files import open_regular
from rl_cli.core.handwritten import short
from rl_cli.core.json_text import load_json

LONGEST = 64 * 2**20
"""Bytes of a line, or characters of an element of a list, that are read at most."""
CHUNK = 8192
BLANK = " \t\r\n"


@dataclass(frozen=True)
class Unreadable:
    """In place of a row: why it could not be read."""

    why: str


Rows = Iterator[tuple[str, Any]]
"""("line 7", what stands there): lines of a file by their number, else rows by theirs, from 1."""


def jsonl_rows(path: Path) -> Rows:
    """A value for each line that is not empty."""
    with open_regular(path) as file:
        number = 0
        while line := file.readline(LONGEST):
            number += 1
            whole = line.endswith(b"\n") or len(line) < LONGEST
            while not line.endswith(b"\n") and (rest := file.readline(CHUNK)):
                line = rest
            if not whole:
                yield f"line {number}", Unreadable(f"longer than {LONGEST // 2**20} MiB")
            elif line := line.removeprefix(codecs.BOM_UTF8).strip():
                yield f"line {number}", _value(line)


def json_rows(path: Path) -> Rows:
    """The elements of a file that is one JSON list.

    Raises:
        BadUsage: It is none, or from some row on it is damaged: what follows cannot be told apart.
    """
    with io.TextIOWrapper(open_regular(path), "utf-8-sig") as file:
        text = _more(file, "")
        if not text.startswith("["):
            raise BadUsage(f"{path} is no JSON list of rows", "lines of JSON belong into a .jsonl file")
        number, text = 0, _more(file, text[1:])
        while not text.startswith("]"):
            number += 1
            try:
                value, text = _element(file, text)
            except UnicodeDecodeError:
                raise
            except ValueError as error:
                raise BadUsage(f"{path} is damaged in row {number}: {one_line(str(error), 200)}") from error
            yield f"row {number}", value
        if behind := _more(file, text[1:]):
            raise BadUsage(
                f"{path}: the list ends behind row {number}, and more follows: {one_line(behind, 40)}",
                "rows behind a list would be passed over: make it one list, or lines in a .jsonl file",
            )


def csv_rows(path: Path) -> Rows:
    """Each record under the head's names; fields that are empty are left out."""
    return _table(path, ",")


def tsv_rows(path: Path) -> Rows:
    """The same with tabs between the fields."""
    return _table(path, "\t")


def _value(line: bytes) -> Any:
    try:
        return load_json(line.decode())
    except ValueError as error:
        return Unreadable(f"not JSON: {one_line(str(error), 200)}")


def _more(file: io.TextIOWrapper, text: str) -> str:
    """`text` without blanks before it, with more of the file where nothing is left."""
    text = text.lstrip(BLANK)
    while not text and (text := file.read(CHUNK)):
        text = text.lstrip(BLANK)
    return text


def _element(file: io.TextIOWrapper, text: str) -> tuple[Any, str]:
    """An element of a list, and what follows its comma, or the bracket that closes the list.

    Raises:
        ValueError: There is none, it is longer than LONGEST, or the file ends before it does.
    """
    size = CHUNK
    while True:
        problem = "the list is not closed"
        try:
            value, end = json.JSONDecoder().raw_decode(text)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        except ValueError as error:
            problem = str(error)
        else:
            rest = text[end:].lstrip(BLANK)
            if rest.startswith("]"):
                return value, rest
            if rest.startswith(","):
                return value, _more(file, rest[1:])
            if rest:
                raise ValueError("a comma is missing behind it")
        if len(text) > LONGEST or not (piece := file.read(size)):
            raise ValueError(problem)
        text, size = text + piece, size * 2


def _head(path: Path, records: csv.DictReader[str]) -> Sequence[str]:
    try:
        return records.fieldnames or ()
    except csv.Error as error:
        raise BadUsage(f"{path} is damaged before line {records.line_num + 1}: {error}") from error


def _table(path: Path, delimiter: str) -> Rows:
    csv.field_size_limit(LONGEST)
    with io.TextIOWrapper(open_regular(path), "utf-8-sig", newline="") as file:
        records = csv.DictReader(file, delimiter=delimiter, strict=True)
        if twice := [name for name, count in Counter(_head(path, records)).items() if count > 1]:
            raise BadUsage(f"{path}: two columns are called {short(twice[0])}", "give each a name of its own")
        number = 0
        while True:
            number += 1
            try:
                record = next(records)
            except StopIteration:
                return
            except csv.Error as error:
                raise BadUsage(f"{path} is damaged before line {records.line_num + 1}: {error}") from error
            if None in record:
                yield f"row {number}", Unreadable("it has more fields than the head")
            else:
                yield f"row {number}", {name: text for name, text in record.items() if text}
