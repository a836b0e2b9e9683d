"""Child process of second_opinion: math-verify on lines of JSON, in bounded memory and time.

Reads {"gold", "answer"} and writes {"correct"} for each; first of all {"ready": true}. It does not outlive
its parent: its input ends then, and what it still computes ends at the limit on CPU time.

Usage: python -m environments.rewards.second_opinion_worker START_SECONDS ANSWER_SECONDS
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time

MOST_MEMORY = 2 << 30
"""Bytes of address space; a tower of powers ends in a MemoryError."""


def main(start_s: float, answer_s: float) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _end_after(start_s)
    from math_verify import parse, verify

    sys.set_int_max_str_digits(100_000)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        _end_after(answer_s)
        request = json.loads(line)
        try:
            # Its own time limits need signals; the parent has a clock that always works.
            gold = parse(request["gold"], parsing_timeout=0)
            answer = parse(request["answer"], parsing_timeout=0)
            correct = bool(gold and answer and verify(gold, answer, timeout_seconds=0))
        except Exception:  # whatever a symbolic library raises on such text: no opinion
            correct = None
        print(json.dumps({"correct": correct}), flush=True)


def _end_after(seconds: float) -> None:
    """Lets the kernel end this process after so much more CPU time, whatever it does then."""
    soft, hard = math.ceil(time.process_time() + seconds), resource.getrlimit(resource.RLIMIT_CPU)[1]
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
