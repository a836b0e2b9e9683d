"""How fast a model's turn is taken apart, as a ratio to `json.loads` of a text of 200 KB that is one string.

The turn has the same length: a third is prose, then come two calls, one of them with a text of half the turn.
Seconds are of CPU time, the best of several.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from environments.parsers.base import ParsedCall
from environments.parsers.families import FAMILIES
from environments.parsers.parser import Family, StreamParser

SIZE = 200 * 1024
PROSE = "The harbour plan says that the tide turns at noon, so we check it. "
CODE = "def f(x): return x + 1  # note the tide <b> \n"
TOOLS = [
    {
        "name": "tide_table",
        "parameters": {"properties": {"harbour": {"type": "string"}, "days": {"type": "integer"}}},
    },
    {
        "name": "save_note",
        "parameters": {"properties": {"path": {"type": "string"}, "body": {"type": "string"}}},
    },
]


def best(work: Callable[[], Any], times: int = 20) -> float:
    """CPU seconds."""
    seconds = []
    for _ in range(times):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def calibration() -> float:
    text = json.dumps("a" * SIZE)
    return best(lambda: json.loads(text), 50)


def turn(family: Family, size: int = SIZE) -> str:
    body = (CODE * (size // len(CODE)))[: size // 2]
    calls = [
        ParsedCall("tide_table", '{"harbour": "Oban", "days": 3}'),
        ParsedCall("save_note", json.dumps({"path": "plan.py", "body": body})),
    ]
    return (PROSE * (size // len(PROSE)))[: size // 3] + "\n" + family.render(calls)


def stream(family: Family, text: str, size: int = 4) -> None:
    parser = StreamParser(family, TOOLS)
    for start in range(0, len(text), size):
        parser.feed(text[start : start + size])
    parser.end()


def main() -> None:
    print("parsers: a turn of 200 KB against json.loads of 200 KB; streamed in pieces of 4 characters")
    base = calibration()
    for family in FAMILIES.values():
        text = turn(family)
        whole = best(partial(family.parse, text, TOOLS))
        streamed = best(partial(stream, family, text), 1)
        print(
            f"{family.name:16} {whole / base:5.1f} x, streamed {streamed * 1e9 / len(text):5.0f} ns/character"
        )


if __name__ == "__main__":
    main()
