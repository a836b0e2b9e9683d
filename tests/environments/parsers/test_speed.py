"""Twice the text takes twice the time, whatever it is; and the time is a small multiple of reading JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import pytest

from environments.parsers.base import ParsedCall
from environments.parsers.families import FAMILIES
from environments.parsers.parser import Family
from tests.bench.parsers import TOOLS, best, calibration, stream, turn

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
    yield from (call, call[: len(call) // 2], call[:-1])
    yield from ("<", "[", "{", '"', "\\", '{"a":', '[{"name":', "f(a=[", " \n", "<think>", "\n</think>\n")


def growth(work: partial[object], twice: partial[object], times: int) -> float:
    """How much longer twice the text takes; retried, since what else runs disturbs the caches."""
    for _ in range(4):
        ratio = best(twice, times) / max(best(work, times), 1e-9)
        if ratio <= 2.2:
            break
    return ratio


@every_family
def test_twice_the_turn_takes_twice_the_time(family: Family) -> None:
    small, large = (turn(family, size) for size in (100_000, 200_000))
    assert growth(partial(family.parse, small, TOOLS), partial(family.parse, large, TOOLS), 5) <= 2.6


@pytest.mark.soak
@every_family
def test_a_turn_of_200_kb_against_reading_json(family: Family) -> None:
    text, most = turn(family), MOST[family.name in JSON_FAMILIES]
    assert len(family.parse(text, TOOLS).tool_calls) == 2
    ratio = min(best(partial(family.parse, text, TOOLS), 30) / calibration() for _ in range(3))
    print(f"{family.name}: {ratio:.1f} times json.loads of as much")
    assert ratio <= most


@pytest.mark.soak
@every_family
def test_floods_take_linear_time(family: Family) -> None:
    call = family.render([ParsedCall("f", '{"a": "x", "b": 3}')])
    for head in ("", call[: 2 * len(call) // 3]):
        for unit in floods(family):
            small, large = (head + unit * (size // len(unit)) for size in (50_000, 100_000))
            ratio = growth(partial(family.parse, small, TOOLS), partial(family.parse, large, TOOLS), 1)
            assert ratio <= 2.2, (head, unit, ratio)


@pytest.mark.soak
@every_family
def test_a_piece_costs_the_same_wherever_it_comes(family: Family) -> None:
    call = json.dumps({"a": "x" * 30_000})
    text = family.render([ParsedCall("f", call)])
    floods = [
        text,
        text[:-1],
        *(mark * (30_000 // len(mark)) for mark in (*family.grammar.openers, "<", "[")),
    ]
    for small in floods:
        half = small[: len(small) // 2]
        assert growth(partial(stream, family, half), partial(stream, family, small), 1) <= 2.4, small[:60]
