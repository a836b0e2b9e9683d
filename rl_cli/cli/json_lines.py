"""Lines of JSON in, a line of JSON out for each: one line in memory at a time, and a bad one ends nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from rl_cli.core.errors import WorkFailed
from rl_cli.core.json_text import to_json
from rl_cli.core.printable import printable_json


def answer_lines(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Prints {"id", ...} with what `answer` gives for each object on standard input; blank lines are skipped.

    Texts are passed on as they are: secrets are not masked. A line that is no JSON object is told of on
    stderr.

    Raises:
        WorkFailed: At the end, if there was such a line.
    """
    bad = 0
    with open(0, "rb", closefd=False) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8-sig"))
                if not isinstance(row, dict):
                    raise ValueError("no JSON object")
            except (ValueError, RecursionError) as error:
                bad += 1
                print(f"line {number}: {error}", file=sys.stderr)
                continue
            print(printable_json(to_json({"id": row.get("id"), **answer(row)})), flush=True)
    if bad:
        raise WorkFailed(f"{bad} line{'s' if bad > 1 else ''} could not be read")
