"""How much longer than bare Python the quick commands take: `python -P -m tests.bench.startup`.

Runs take turns, so that a busy machine slows all of them alike; the figures are medians.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from tests.e2e.cli import command

ROUNDS = 15
CASES = {
    "bare python": [sys.executable, "-c", "pass"],
    "rl-cli --help": command("--help"),
    "rl-cli runs list": command("runs", "list"),
    "rl-cli tools list": command("tools", "list"),
}


def measure(rounds: int = ROUNDS) -> dict[str, float]:
    """Seconds from start to exit of each case, the median of `rounds`."""
    seconds: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(rounds + 1):
        for name, argv in CASES.items():
            started = time.perf_counter()
            subprocess.run(argv, capture_output=True, check=True)
            seconds[name].append(time.perf_counter() - started)
    return {
        name: statistics.median(values[1:]) for name, values in seconds.items()
    }  # the first warms the caches


def main() -> None:
    medians = measure()
    bare = medians.pop("bare python")
    print(f"bare python: {bare:.3f} s")
    for name, seconds in medians.items():
        print(
            f"{name}: {seconds:.3f} s, {seconds - bare:.3f} s more than bare python (at most 0.3 is promised)"
        )


if __name__ == "__main__":
    main()
