"""Child process of second_opinion: math-verify on lines of JSON, in a bounded memory.

Reads {"gold", "answer"} and writes {"correct"} for each; first of all {"ready": true}.
"""

from __future__ import annotations

import json
import resource
import sys

MOST_MEMORY = 2 << 30
"""Bytes of address space; a tower of powers ends in a MemoryError."""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    from math_verify import parse, verify

    sys.set_int_max_str_digits(100_000)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            # Its own time limits need signals; the parent has a clock that always works.
            gold = parse(request["gold"], parsing_timeout=0)
            answer = parse(request["answer"], parsing_timeout=0)
            correct = bool(gold and answer and verify(gold, answer, timeout_seconds=0))
        except Exception:  # whatever a symbolic library raises on such text: no opinion
            correct = None
        print(json.dumps({"correct": correct}), flush=True)


if __name__ == "__main__":
    main()
