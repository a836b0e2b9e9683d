"""`make fuzz`: what the tests of the parsers check, on as many texts as the time allows.

First the property tests, with new seeds until the time is over; then atheris, which looks for texts that
reach new code. Each has as many seconds as the first argument says (60). A text that fails is printed.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable

from hypothesis import HealthCheck, seed, settings

from tests.environments.parsers import test_any_text, test_render

PROPERTIES: tuple[Callable[[], None], ...] = (
    test_any_text.test_marks_in_any_order,
    test_any_text.test_every_word_is_somewhere,
    test_any_text.test_text_without_marks_is_content,
    test_render.test_what_is_written_is_read_back,
)
EXAMPLES = 500


def main() -> int:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    print(f"hypothesis: {with_hypothesis(seconds)} texts, no fault")
    if importlib.util.find_spec("atheris") is None:
        print(
            "atheris: not installed (pip install 'rl-flywheel[fuzz]'; Linux, Python 3.11 to 3.13): left out"
        )
        return 0
    command = [sys.executable, "-P", "-m", "tests.fuzz.with_atheris", f"-max_total_time={seconds}"]
    return subprocess.run(
        [*command, "-timeout=10", "-max_len=300", "-verbosity=0", "-print_final_stats=1"]
    ).returncode


def with_hypothesis(seconds: float) -> int:
    """How many texts were tried."""
    budget = settings(
        max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    tests = [budget(test) for test in PROPERTIES]
    end, start = time.monotonic() + seconds, time.time_ns()
    rounds = 0
    while time.monotonic() < end:
        for test in tests:
            seed(start + rounds)(test)()
        rounds += 1
    return rounds * EXAMPLES * len(PROPERTIES)


if __name__ == "__main__":
    sys.exit(main())
