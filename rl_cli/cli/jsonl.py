"""JSON lines from standard input, a line of output for each, in constant memory; bad ones are told of."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from typing import Any

from rl_cli.cli.output import say
from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.core.printable import printable_json


def convert_lines(convert: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Prints what `convert` makes of each line's object, with the same `id`; empty lines are passed over.

    A byte order mark at the beginning is dropped; bytes that are no UTF-8 become lone surrogates.
    A line that is no JSON object, or with which `convert` raises BadUsage, is reported on stderr with its
    number, and reading goes on.

    Raises:
        WorkFailed: At the end, where a line could not be read.
    """
    count = bad = 0
    with open(0, "rb", closefd=False) as lines:
        for number, line in enumerate(lines, 1):
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if not line.strip():
                continue
            count += 1
            try:
                row = _object(line)
                made = convert(row)
            except BadUsage as error:
                bad += 1
                say(f"line {number}: {error}", error=True)
            else:
                print_exactly({"id": row.get("id"), **made})
    if bad:
        raise WorkFailed(f"{bad} of {count} lines could not be read")


def print_exactly(value: dict[str, Any]) -> None:
    """One line, at once and without masking: text comes back as it was given, lone surrogates as escapes."""
    print(printable_json(json.dumps(value, ensure_ascii=False)), flush=True)


def _object(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode(errors="surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise BadUsage(f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise BadUsage("not a JSON object")
    return row
