"""Twice the text takes twice the time, whatever it is; and the time is a small multiple of reading JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from environments.parsers.base import ParsedCall
from environments.parsers.families import FAMILIES
from environments.parsers.parser import Family
from tests.bench.parsers import TOOLS, best, calibration, stream, turn
from tests.environments.parsers.suite import floods as floods_of_cases

every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
JSON_FAMILIES = {
    *("hermes", "qwen", "longcat", "granite", "granite4", "ernie45", "internlm", "hunyuan_a13b", "phi4_mini"),
    *("xlam", "llama", "mistral", "mistral_pre_v11", "deepseek_v3", "deepseek_v31", "kimi_k2", "gpt_oss"),
}
MOST = {True: 4, False: 15}
"""Times the calibration, for families whose calls are JSON, and for the others."""


def floods(family: Family) -> Iterator[str]:
    """Units that, repeated, have made parsers slow: marks that open and never close, cut calls, brackets."""
    call = family.render([ParsedCall("f", '{"a": "x", "b": 3}')])
    yield from family.grammar.openers
    yield from (call, call[: len(call) // 2], call[:-1], '\\"', call[:-1] + '"', "'}" + call[:9])
    yield from ("<", "[", "{", '"', "\\", '{"a":', '[{"name":', "f(a=[", " \n", "<think>", "\n</think>\n")


def flood(head: str, unit: str, size: int) -> str:
    return head + unit * (size // len(unit))


def growth(read: Callable[[str], object], text: Callable[[int], str], size: int) -> float:
    """How much longer twice the text takes, between `size` and four times that.

    Tried again where it is much, since what else runs disturbs the caches. Below a millisecond none is.
    """
    small, large = text(size), text(4 * size)
    for _ in range(4):
        ratio = best(partial(read, large), 2) / max(best(partial(read, small), 2), 1e-3)
        if ratio <= 2.2**2:
            break
    return ratio**0.5


@every_family
def test_twice_the_turn_takes_twice_the_time(family: Family) -> None:
    assert growth(partial(family.parse, tools=TOOLS), partial(turn, family), 500_000) <= 2.2


@pytest.mark.soak
@pytest.mark.alone
@every_family
def test_a_turn_of_200_kb_against_reading_json(family: Family) -> None:
    text, most = turn(family), MOST[family.name in JSON_FAMILIES]
    assert len(family.parse(text, TOOLS).tool_calls) == 2
    ratio = min(best(partial(family.parse, text, TOOLS), 30) / calibration() for _ in range(3))
    print(f"{family.name}: {ratio:.1f} times json.loads of as much")
    assert ratio <= most


@pytest.mark.soak
@pytest.mark.alone
@every_family
def test_floods_take_linear_time(family: Family) -> None:
    call = family.render([ParsedCall("f", '{"a": "x", "b": 3}')])
    for head in ("", call[: 2 * len(call) // 3]):
        for unit in floods(family):
            ratio = growth(partial(family.parse, tools=TOOLS), partial(flood, head, unit), 40_000)
            assert ratio <= 2.2, (head, unit, ratio)


@pytest.mark.soak
@pytest.mark.alone
def test_twice_the_flood_of_a_case_takes_twice_the_time() -> None:
    for case, more in floods_of_cases():
        size = len(case.text)
        texts = {size: case.text, 4 * size: more.text}
        ratio = growth(partial(case.family.parse, tools=case.tools), texts.__getitem__, size)
        print(f"{case.id}: {ratio:.2f} times")
        assert ratio <= 2.2, case.id


@pytest.mark.soak
@pytest.mark.alone
@every_family
def test_a_piece_costs_the_same_wherever_it_comes(family: Family) -> None:
    text = family.render([ParsedCall("f", json.dumps({"a": "x" * 60_000}))])
    assert growth(partial(stream, family), lambda size: text[:size], 15_000) <= 2.2
    for unit in (*family.grammar.openers, "<", "["):
        assert growth(partial(stream, family), partial(flood, "", unit), 8_000) <= 2.2, unit
