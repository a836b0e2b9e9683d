"""JSON lines from standard input, a line of output for each, in constant memory; bad ones are told of."""

from __future__ import annotations

import codecs
import json
import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any, BinaryIO

from rl_cli.cli.output import say
from rl_cli.core.cuts import one_line
from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.core.printable import printable_json

LONGEST_LINE = 64 * 2**20
"""Bytes. A longer one is passed over unread: a line of text takes five times its length of memory."""


def convert_lines(convert: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Prints what `convert` makes of each line's object, with the same `id`; empty lines are passed over.

    A byte order mark at the beginning of a line is dropped; bytes that are no UTF-8 become lone surrogates.
    A line that is no JSON object, or with which `convert` raises BadUsage, is reported on stderr with its
    number, and reading goes on. What is printed is whole lines, in the order of the input; if the process is
    killed, the last may be cut.

    Raises:
        BadUsage: Input and output are one file, or there is no input.
        WorkFailed: At the end, where a line could not be read.
    """
    _check_streams()
    count = bad = 0
    with open(0, "rb", closefd=False) as stream:
        for number, line in _numbered(stream):
            count += 1
            try:
                row = _object(line)
                text = _text({"id": row.get("id"), **convert(row)})
            except BadUsage as error:
                bad += 1
                say(f"line {number}: {error}", error=True)
            else:
                print(text, flush=True)
    if bad:
        raise WorkFailed(f"{bad} of {count} lines could not be read")


def with_other_fields(row: dict[str, Any], read: Collection[str], made: dict[str, Any]) -> dict[str, Any]:
    """What was made of a line, and its other fields; those of a name that was made are left out."""
    return made | {name: value for name, value in row.items() if name not in made and name not in read}


def texts_of(row: dict[str, Any], names: Collection[str]) -> list[str]:
    """The texts of these fields.

    Raises:
        BadUsage: One is missing, or no text.
    """
    for name in names:
        if row.get(name) is None:
            raise BadUsage(f"'{name}' is missing")
        if not isinstance(row[name], str):
            raise BadUsage(f"'{name}' must be text")
    return [row[name] for name in names]


def print_exactly(value: dict[str, Any]) -> None:
    """One line, at once and without masking: text comes back as it was given, lone surrogates as escapes."""
    print(_text(value), flush=True)


def _text(value: dict[str, Any]) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise BadUsage("nested too deeply") from None
    except ValueError:
        raise BadUsage("NaN or an infinite number, which JSON lacks") from None
    return text if text.isprintable() else printable_json(text)


def _numbered(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """The lines that are not empty, with their numbers; None for one that is too long."""
    number = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        whole = line.endswith(b"\n") or len(line) < LONGEST_LINE
        while not line.endswith(b"\n") and (rest := stream.readline(2**16)):
            line = rest
        line = line.removeprefix(codecs.BOM_UTF8)
        if not whole or line.strip():
            yield number, line if whole else None


def _object(line: bytes | None) -> dict[str, Any]:
    if line is None:
        raise BadUsage(f"longer than {LONGEST_LINE // 2**20} MiB, and passed over")
    try:
        row = json.loads(line.decode(errors="surrogateescape"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise BadUsage(f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise BadUsage("not a JSON object")
    return row


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; `json` would keep the last of two fields of one name, and nobody would know."""
    found = dict(pairs)
    if len(found) < len(pairs):
        (name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the field {one_line(repr(name), 40)} is there twice in one object")
    return found


def _check_streams() -> None:
    """There is an input, and it is not the output: appended to itself, a file would be read for ever."""
    if sys.stdin is None:
        raise BadUsage("standard input is closed", "give it a file or a pipe")
    given, written = os.fstat(0), os.fstat(1)
    if stat.S_ISREG(given.st_mode) and os.path.samestat(given, written):
        raise BadUsage(
            "input and output are the same file", "write to another one; `< FILE > FILE` empties it at once"
        )
