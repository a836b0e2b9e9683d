"""Every case of the suite, read whole and piece by piece."""

from __future__ import annotations

import json
import time
from functools import cache
from typing import Any

import pytest

from tests.bench.parsers import best
from tests.environments.parsers.replay import in_pieces, splits, stream
from tests.environments.parsers.suite import Case, load

CASES = load()
SURE = [case for case in CASES if case.strictness in ("must", "should")]
SHORT = [case for case in CASES if len(case.text) <= 2000]
CALIBRATION_S = 110e-6
"""Reading a JSON text that is one string of 200 KB, where the cases' limits were measured."""


def named(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.id)


@cache
def calibration() -> float:
    text = json.dumps("a" * 200 * 1024)
    return best(lambda: json.loads(text))


@named(SURE)
def test_what_no_reader_would_dispute(case: Case) -> None:
    start = time.process_time()
    parsed = case.family.parse(case.text, case.tools)
    took = time.process_time() - start
    assert case.accepts(parsed), parsed
    if case.time_limit_s:
        assert took <= case.time_limit_s * calibration() / CALIBRATION_S


@pytest.mark.parametrize("remainder", range(8))
def test_pieces_make_no_difference(remainder: int) -> None:
    """Each case once: cut at two places, which differ from case to case."""
    for number, case in enumerate(SHORT[remainder::8], remainder):
        whole = case.family.parse(case.text, case.tools)
        cut = number * 7 % (len(case.text) + 1)
        for pieces in ([case.text[:cut], case.text[cut:]], in_pieces(case.text, 1 + number % 3)):
            assert stream(case.family, case.tools, pieces) == whole, (case.id, pieces)


@pytest.mark.soak
def test_no_split_makes_a_difference() -> None:
    for case in CASES:
        whole = case.family.parse(case.text, case.tools)
        for pieces in splits(case.text):
            assert stream(case.family, case.tools, pieces) == whole, (case.id, pieces)
