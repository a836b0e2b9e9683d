"""Grading takes time in proportion to the length of an answer, whatever it holds."""

from __future__ import annotations

import time

import pytest

from environments.rewards.numbers import grade_number

LENGTH = 50_000
"""Characters of the shorter of two texts."""
MOST = 2.2
"""Times the CPU time for twice the text."""

UNITS = (
    "9¦1,¦1 ¦1/¦1.¦1e¦9^¦9^{¦1 or ¦1 and ¦1-¦1=¦1 1/1 ¦1; ¦1 dollars ¦not 1¦-¦$¦~¦~~1¦_1¦*1¦`¦. ¦? ¦\n¦x\n"
    "¦ ¦|¦(¦)¦{¦}¦[¦<¦<<¦<<1>>¦\\¦\\boxed{¦\\boxed{}¦\\boxed{1}¦\\boxed{1} or ¦\\text{¦\\frac{¦\\frac{1}{"
    "¦\\frac12¦\\,¦<think>¦</think>¦<think></think>¦<answer>¦<answer></answer>¦<|channel|>¦<|im_end|"
    "¦the answer ¦the answer is ¦the answer is 1 ¦the answer is x.\n¦####¦####\n¦#### 1\n¦#### w\n¦<b>¦> "
    '¦wait ¦wait it is ¦neither ¦one ¦one hundred ¦minus ¦不是¦一¦十分之¦答案是¦²¦１¦１，¦½¦{"answer":'
)
PARTS = UNITS.split("¦")
HOSTILE = {
    "3,000,000 digits": "9" * 3_000_000,
    "3,000,000 digits in a box": "\\boxed{" + "9" * 3_000_000 + "}",
    "200 kB of (": "(" * 200_000,
    "nested powers": "\\boxed{" + "9^{" * 50_000 + "9" + "}" * 50_000 + "}",
    "nested boxes": "\\boxed{" * 50_000 + "18" + "}" * 50_000,
    "spaces around": " " * 200_000 + "1" + " " * 200_000,
    "a long way to a mark": "#### 18\n" + "and so on. " * 100_000,
}


def cpu_seconds(answer: str) -> float:
    """The least of three, since other tests run beside."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        grade_number("18", answer)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("part", PARTS, ids=ascii)
def test_twice_the_text_takes_twice_the_time(part: str) -> None:
    for lead in ("", "The answer is "):
        count = LENGTH // len(part)
        text, twice = lead + part * count, lead + part * (2 * count)
        for _ in range(5):  # once in a while the machine is busy
            least = max(cpu_seconds(text), 0.01)
            if cpu_seconds(twice) <= MOST * least:
                break
        else:
            pytest.fail(f"more than {MOST} times {least:.3f} s for twice {lead!r} and {part!r}")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_answers_are_graded_at_once(name: str) -> None:
    assert cpu_seconds(HOSTILE[name]) < 5
