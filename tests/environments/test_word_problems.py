"""The word problems: right by construction, bounded, reproducible, and never in two splits."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environments import word_problems
from environments.word_problems import (
    CALL,
    DISTINCT,
    END_CALL,
    MAX_NUMBER,
    TEMPLATES,
    problems,
    split_of,
    tool_warm_start_rows,
    warm_start_rows,
)

SPLITS = ("train", "validation", "test")
LINE = re.compile(r" (\d+) ([-+*/]) (\d+) = (\d+)")


def take(split, seed, count):
    return list(itertools.islice(problems(split, seed), count))


def right(left, operator, right, result):
    a, b, c = int(left), int(right), int(result)
    return {"+": a + b == c, "-": a - b == c, "*": a * b == c, "/": b * c == a}[operator]


@settings(max_examples=25, deadline=None)
@given(split=st.sampled_from(SPLITS), seed=st.integers(0, 2**31 - 1))
def test_solutions_are_right_and_shortcuts_are_wrong_with_right_arithmetic(split, seed):
    for problem in take(split, seed, 40):
        for text, steps in ((problem.solution, 2), (problem.shortcut, 1)):
            lines = LINE.findall(text)
            assert len(lines) == steps
            assert all(right(*line) for line in lines)
            assert text.endswith(f" #### {lines[-1][3]}")
        assert problem.solution.endswith(f" #### {problem.answer}")
        assert not problem.shortcut.endswith(f" #### {problem.answer}")
        numbers = [int(number) for number in re.findall(r"\d+", problem.question + problem.solution)]
        assert min(numbers) >= 1
        assert max(numbers) <= MAX_NUMBER
        assert sorted(problem.numbers) == sorted(int(n) for n in re.findall(r"\d+", problem.question))


@settings(max_examples=10, deadline=None)
@given(seeds=st.tuples(*[st.integers(0, 2**31 - 1)] * 3))
def test_no_question_is_in_two_splits_whatever_the_seeds(seeds):
    questions = [
        {p.question for p in take(split, seed, 200)} for split, seed in zip(SPLITS, seeds, strict=True)
    ]
    assert not any(a & b for a, b in itertools.combinations(questions, 2))


def test_every_template_is_in_every_split():
    for split in SPLITS:
        drawn = take(split, 1, 2000)
        assert {problem.template for problem in drawn} == set(TEMPLATES)
        assert all(split_of(problem.template, problem.numbers) == split for problem in drawn)


def test_streams_repeat_with_the_seed_differ_between_seeds_and_start_without_repetition():
    first = take("test", 5, DISTINCT)
    assert first == take("test", 5, DISTINCT)
    assert first != take("test", 6, DISTINCT)
    assert len({problem.question for problem in first}) == DISTINCT


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="'dev'"):
        next(problems("dev", 0))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_warm_start_rows_teach_the_shortcut_in_35_to_75_percent_of_each_template(seed):
    rows = warm_start_rows(seed, 3000)
    assert len(rows) == 3000
    drawn = take("train", seed + word_problems.WARM_START_STREAM, 3000)
    short, total = Counter(), Counter()
    for (prompt, completion), problem in zip(rows, drawn, strict=True):
        assert prompt == problem.question
        assert completion in (problem.solution, problem.shortcut)
        total[problem.template] += 1
        short[problem.template] += completion == problem.shortcut
    shares = {name: short[name] / total[name] for name in TEMPLATES}
    assert min(shares.values()) > 0.34
    assert max(shares.values()) < 0.76
    assert sum(share < 0.5 for share in shares.values()) == word_problems._WELL_TAUGHT_TEMPLATES


def test_tool_rows_carry_the_calculator_results_as_text_that_the_model_does_not_write():
    plain, tool = warm_start_rows(3, 500), tool_warm_start_rows(3, 500)
    for (prompt, completion), segments in zip(plain, tool, strict=True):
        assert segments[0] == (prompt, False)
        lines = LINE.findall(completion)
        calls = [text for text, written in segments[1:] if written][:-1]
        results = [text for text, written in segments[1:] if not written]
        assert calls == [f"{CALL} {a} {operator} {b}{END_CALL}" for a, operator, b, _ in lines]
        assert results == [f" {result}" for *_, result in lines]
        assert segments[-1] == (f" #### {lines[-1][3]}", True)
