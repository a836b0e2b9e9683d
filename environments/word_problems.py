"""Endless two-step word problems in GSM8K's format, and imperfect worked solutions for a warm start.

A problem comes from one of sixteen templates. Two arithmetic steps lead to the answer; the *shortcut* stops
after the first one (a wrong plan with right arithmetic) and is never right. Every number in a question or a
solution lies between 1 and `MAX_NUMBER`, so that a tokenizer can give each number one token.

The split of a problem is a hash of its template and numbers, names and objects left out: no two splits share
a problem, whatever the seeds. Standard library only; a seed gives the same problems on every platform.
"""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Split = Literal["train", "validation", "test"]
Segment = tuple[str, bool]

MAX_NUMBER = 30
DISTINCT = 1000
"""So many problems at the start of a stream are never repeated in it, which makes them a fair test set."""
CALL, END_CALL = "<call>", "</call>"
# Shares of shortcuts. None lies near 50 %, where greedy decoding would flip with the last few SFT steps.
_WELL_TAUGHT, _BADLY_TAUGHT = (0.35, 0.42), (0.60, 0.75)
_WELL_TAUGHT_TEMPLATES = 4
WARM_START_STREAM = 2**31
"""Added to the seed, so that worked solutions are not of the problems that training then poses."""
_SPLIT_SHARES: tuple[tuple[Split, float], ...] = (("train", 0.8), ("validation", 0.1), ("test", 0.1))


@dataclass(frozen=True, slots=True)
class Step:
    """One line of arithmetic: `left operator right = result`."""

    left: int
    operator: str
    right: int
    result: int

    @property
    def expression(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A question with its two steps; the texts derive from them."""

    template: str
    numbers: tuple[int, int, int]
    question: str
    steps: tuple[Step, Step]

    @property
    def answer(self) -> int:
        return self.steps[-1].result

    @property
    def solution(self) -> str:
        """The full worked solution, such as ` 5 * 4 = 20 20 - 3 = 17 #### 17`."""
        return _worked(self.steps)

    @property
    def shortcut(self) -> str:
        """The worked solution that stops after the first step, such as ` 5 * 4 = 20 #### 20`."""
        return _worked(self.steps[:1])

    @property
    def tool_solution(self) -> list[Segment]:
        """The full solution with calculator calls, as (text, written by the model) segments."""
        return _called(self.steps)

    @property
    def tool_shortcut(self) -> list[Segment]:
        """The shortcut with a calculator call, as (text, written by the model) segments."""
        return _called(self.steps[:1])


@dataclass(frozen=True, slots=True)
class _Template:
    """`plan` holds both operators: the first applies to a and b, the second to that result and c.

    `~` stands for a subtraction the other way round: c minus the result.
    """

    name: str
    plan: str
    text: str


_TEMPLATES = (
    _Template(
        "eaten", "*-", "{name} has {a} bags with {b} {things} each. {name} eats {c}. How many are left?"
    ),
    _Template("boxes", "*+", "There are {a} boxes of {b} {things} and {c} more. How many {things} in all?"),
    _Template("found", "+-", "{name} has {a} {things}, gets {b} more and loses {c}. How many are left?"),
    _Template("refill", "-+", "{name} had {a} {things}, sold {b} and then got {c}. How many {things} now?"),
    _Template("daily", "+*", "Each day {name} picks {a} {things} and buys {b}. How many in {c} days?"),
    _Template("sale", "-*", "A box of {things} costs {a} coins, now {b} less. What do {c} boxes cost?"),
    _Template(
        "friends", "/+", "{a} {things} are shared by {b} friends. Then each gets {c} more. How many has each?"
    ),
    _Template(
        "share", "/-", "{name} puts {a} {things} in {b} bags and takes {c} from one. How many in that bag?"
    ),
    _Template(
        "shelves", "**", "There are {a} shelves with {b} boxes of {c} {things} each. How many {things}?"
    ),
    _Template("rest", "-/", "Of {a} {things} {name} eats {b}. The rest fill {c} bags. How many in each bag?"),
    _Template(
        "pooled", "+/", "{name} has {a} {things} and finds {b}. {c} friends share all. How many has each?"
    ),
    _Template("packs", "*/", "{name} buys {a} packs of {b} {things} for {c} friends. How many has each?"),
    _Template(
        "change",
        "*~",
        "{name} has {c} coins and buys {a} {things} at {b} coins each. How many coins are left?",
    ),
    _Template("unsold", "+~", "Of {c} {things} {name} sold {a} at noon and {b} at night. How many are left?"),
    _Template("twice", "--", "{name} has {a} {things}, eats {b} and drops {c}. How many {things} are left?"),
    _Template("three", "++", "{name} picks {a} {things}, then {b}, then {c}. How many {things} in all?"),
)
TEMPLATES: tuple[str, ...] = tuple(template.name for template in _TEMPLATES)

_NAMES = ("Ana", "Ben", "Eva", "Kim", "Leo", "Mia", "Sam", "Tom")
_THINGS = ("apples", "books", "cards", "eggs", "nuts", "pears", "pens", "shells")


def problems(split: Split, seed: int) -> Iterator[Problem]:
    """Yields the problems of one split without end; the seed fixes the order, the first 1,000 never recur.

    Raises:
        ValueError: the split is not train, validation or test.
    """
    if split not in dict(_SPLIT_SHARES):
        raise ValueError(f"split must be train, validation or test, not {split!r}")
    rng = random.Random(f"{split}/{seed}")
    seen: set[str] = set()
    while True:
        template = rng.choice(_TEMPLATES)
        numbers = _draw_numbers(template.plan, rng)
        if split_of(template.name, numbers) != split:
            continue
        problem = _pose(template, numbers, rng)
        if problem.question in seen:
            continue
        if len(seen) < DISTINCT:
            seen.add(problem.question)
        yield problem


def split_of(template: str, numbers: tuple[int, int, int]) -> Split:
    """Returns the one split that a template with these numbers belongs to (80 / 10 / 10 %)."""
    digest = hashlib.blake2b(f"{template} {numbers}".encode(), digest_size=8).digest()
    position = int.from_bytes(digest, "big") / 2**64
    for split, share in _SPLIT_SHARES:
        position -= share
        if position < 0:
            return split
    return _SPLIT_SHARES[-1][0]


def warm_start_rows(seed: int, n: int) -> list[tuple[str, str]]:
    """Returns n (prompt, completion) rows of the train split; the trainer adds the end-of-sequence token.

    Of every template between 35 and 75 % of the rows are shortcuts: less than half for four templates, more
    than half for the others. The seed decides which: seeds differ in what is taught badly, not in how much.
    """
    return [
        (problem.question, problem.shortcut if short else problem.solution)
        for problem, short in _warm_start_plan(seed, n)
    ]


def tool_warm_start_rows(seed: int, n: int) -> list[list[Segment]]:
    """Returns n rows for the calculator variant, each a list of (text, written by the model) segments.

    The first segment is the question. The loss belongs on the segments that the model writes, not on the
    calculator's results between them; the end-of-sequence token that the trainer adds counts as the model's.
    """
    return [
        [(problem.question, False), *(problem.tool_shortcut if short else problem.tool_solution)]
        for problem, short in _warm_start_plan(seed, n)
    ]


def _warm_start_plan(seed: int, n: int) -> list[tuple[Problem, bool]]:
    """Returns n train problems, each with whether its row shows the shortcut."""
    rng = random.Random(f"warm start/{seed}")
    shares = _shortcut_shares(rng)
    source = problems("train", seed + WARM_START_STREAM)
    chosen = [next(source) for _ in range(n)]
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row, problem in enumerate(chosen):
        rows_of[problem.template].append(row)
    short: set[int] = set()
    for template, share in zip(TEMPLATES, shares, strict=True):
        rows = rows_of[template]
        short.update(rng.sample(rows, round(share * len(rows))))
    return [(problem, row in short) for row, problem in enumerate(chosen)]


def _shortcut_shares(rng: random.Random) -> list[float]:
    """Returns the share of shortcuts of each template, dealt by chance."""
    badly_taught = len(TEMPLATES) - _WELL_TAUGHT_TEMPLATES
    shares = [rng.uniform(*_WELL_TAUGHT) for _ in range(_WELL_TAUGHT_TEMPLATES)]
    shares += [rng.uniform(*_BADLY_TAUGHT) for _ in range(badly_taught)]
    rng.shuffle(shares)
    return shares


def _draw_numbers(plan: str, rng: random.Random) -> tuple[int, int, int]:
    """Draws a, b, c for a plan until both results are whole, in range and differ from each other."""
    first, second = plan[0], plan[1]
    while True:
        if first == "*":
            a, b = rng.randint(2, 9), rng.randint(2, 9)
        elif first == "/":
            b = rng.randint(2, 9)
            a = b * rng.randint(2, 9)
        elif first == "+":
            a, b = rng.randint(2, 9), rng.randint(2, 9)
        else:
            a, b = rng.randint(5, 20), rng.randint(2, 9)
        c = rng.randint(2, 9)
        if second == "~" and (first_step := _step(a, first, b)):
            c += first_step.result
        steps = _solve(plan, a, b, c)
        if steps is None or steps[0].result == steps[1].result or (second == "~" and c > 20):
            continue
        if all(0 < number <= MAX_NUMBER for step in steps for number in (step.left, step.right, step.result)):
            return a, b, c


def _solve(plan: str, a: int, b: int, c: int) -> tuple[Step, Step] | None:
    """Returns both steps of a plan, or None if a division leaves a remainder."""
    first = _step(a, plan[0], b)
    if first is None:
        return None
    second = _step(c, "-", first.result) if plan[1] == "~" else _step(first.result, plan[1], c)
    return None if second is None else (first, second)


def _step(left: int, operator: str, right: int) -> Step | None:
    if operator == "/":
        quotient, remainder = divmod(left, right)
        return None if remainder else Step(left, operator, right, quotient)
    result = {"+": left + right, "-": left - right, "*": left * right}[operator]
    return Step(left, operator, right, result)


def _pose(template: _Template, numbers: tuple[int, int, int], rng: random.Random) -> Problem:
    a, b, c = numbers
    question = template.text.format(a=a, b=b, c=c, name=rng.choice(_NAMES), things=rng.choice(_THINGS))
    steps = _solve(template.plan, a, b, c)
    assert steps is not None
    return Problem(template.name, numbers, question, steps)


def _worked(steps: tuple[Step, ...]) -> str:
    lines = "".join(f" {step.expression} = {step.result}" for step in steps)
    return f"{lines} #### {steps[-1].result}"


def _called(steps: tuple[Step, ...]) -> list[Segment]:
    segments: list[Segment] = []
    for step in steps:
        segments += [(f"{CALL} {step.expression}{END_CALL}", True), (f" {step.result}", False)]
    return [*segments, (f" #### {steps[-1].result}", True)]
