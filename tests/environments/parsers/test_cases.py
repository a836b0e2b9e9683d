"""Every case of the suite, read whole and piece by piece."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.environments.parsers.replay import in_pieces, splits, stream
from tests.environments.parsers.suite import Case, load

CASES = load()
SURE = [case for case in CASES if case.strictness in ("must", "should")]
SHORT = [case for case in CASES if len(case.text) <= 2000]
CALIBRATION_S = 110e-6
"""Reading a JSON text that is one string of 200 KB, where the cases' limits were measured."""


def named(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.id)


@named(SURE)
def test_what_no_reader_would_dispute(case: Case) -> None:
    parsed = case.family.parse(case.text, case.tools)
    assert case.accepts(parsed), parsed


@named([case for case in CASES if case.time_limit_s])
def test_hard_texts_take_no_longer_than_their_limit(case: Case) -> None:
    text = json.dumps("a" * 200 * 1024)
    calibration = min(cpu_seconds(lambda: json.loads(text)) for _ in range(5))
    assert case.time_limit_s
    took = cpu_seconds(lambda: case.family.parse(case.text, case.tools))
    assert took <= case.time_limit_s * calibration / CALIBRATION_S


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


def cpu_seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
