"""Grading takes time in proportion to the length of an answer, whatever it holds."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from environments.rewards.numbers import grade_number

LENGTHS = [4_000, pytest.param(100_000, marks=[pytest.mark.soak, pytest.mark.alone])]
"""Characters of the shorter of two texts."""
MOST = 2.2
"""Times the CPU time for twice the text."""
NOTHING = 0.01
"""Seconds below which no time is told from another."""

UNITS = (
    "9¦1,¦1 ¦1/¦1.¦1e¦9^¦9^{¦1 or ¦1 and ¦1-¦1=¦1 1/1 ¦1; ¦1 dollars ¦not 1¦-¦$¦~¦~~1¦_1¦*1¦`¦. ¦? ¦\n¦x\n"
    "¦ ¦|¦(¦)¦{¦}¦[¦<¦<<¦<<1>>¦\\¦\\boxed{¦\\boxed{}¦\\boxed{1}¦\\boxed{1} or ¦\\text{¦\\frac{¦\\frac{1}{"
    "¦\\frac12¦\\,¦<think>¦</think>¦<think></think>¦<answer>¦<answer></answer>¦<|channel|>¦<|im_end|"
    "¦the answer ¦the answer is ¦the answer is 1 ¦the answer is x.\n¦####¦####\n¦#### 1\n¦#### w\n¦<b>¦> "
    "¦no wait, ¦. Correction: 1¦that's wrong ¦sorry, 1 ¦\n\nNote: ¦other problem"
    "¦~~1~~¦~~¦<del>¦<del>1</del>¦<s>¦\\cancel{¦not ¦not about ¦I don't think ¦I don't think it is 1. "
    "¦1 is wrong ¦doubt ¦wrong answer ¦if ¦if x otherwise ¦else ¦unless ¦1 if x>0 ¦at least ¦at least 1 "
    "¦1 or more ¦1+¦>1¦-> ¦=¦&¦&lt;¦<!--¦1 000 ¦ 000¦and a half ¦1\u0336¦x^2 = ¦x = 1 ¦f(¦1(¦1a¦(x+1)^¦+x¦|x|"
    "¦\\, ¦Is it 1?\n¦no, 1\n¦but it is 1\n¦half ¦no one one ¦\ue000¦<think ¦◁¦[think]¦至少¦不是1¦1? no"
    "¦1, 1 or ¦\\\\ ¦18个¦one might think ¦1, x<1¦<b line-through>¦not ly "
    '¦wait ¦wait it is ¦neither ¦one ¦one hundred ¦minus ¦不是¦一¦十分之¦答案是¦²¦１¦１，¦½¦{"answer":'
)
PARTS = UNITS.split("¦")
HOSTILE: dict[str, Callable[[int], str]] = {
    "digits": lambda n: "9" * n,
    "digits in a box": lambda n: "\\boxed{" + "9" * n + "}",
    "nested powers": lambda n: "\\boxed{" + "9^{" * (n // 4) + "9" + "}" * (n // 4) + "}",
    "nested boxes": lambda n: "\\boxed{" * (n // 8) + "18" + "}" * (n // 8),
    "spaces before a sign": lambda n: " " * n + "=",
    "spaces in a fraction": lambda n: "\\frac{" + " " * n,
    "commas between boxes": lambda n: "\\boxed{1}" + "," * n + "x\\boxed{2}",
    "spaces around": lambda n: " " * n + "1" + " " * n,
    "a long way to a mark": lambda n: "#### 18\n" + "and so on. " * (n // 11),
}


def repeated(before: str, part: str) -> Callable[[int], str]:
    return lambda n: before + part * (n // len(part))


for part in PARTS:
    HOSTILE[f"{part!a}, again and again"] = repeated("", part)
    HOSTILE[f"the answer is, {part!a}"] = repeated("The answer is ", part)


def cpu_seconds(answer: str, times: int = 3) -> float:
    """The least of some, since other tests run beside."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        grade_number("18", answer)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", HOSTILE)
def test_twice_the_text_takes_twice_the_time(name: str, length: int) -> None:
    text, twice = HOSTILE[name](length), HOSTILE[name](2 * length)
    if cpu_seconds(twice, times=1) <= MOST * NOTHING:
        return
    for _ in range(5):  # once in a while the machine is busy
        least = max(cpu_seconds(text), NOTHING)
        if cpu_seconds(twice) <= MOST * least:
            break
    else:
        pytest.fail(f"more than {MOST} times {least:.3f} s for twice the text")
