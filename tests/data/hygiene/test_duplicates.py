"""Which rows count as said before."""

from __future__ import annotations

import random

import pytest

from rl_cli.core.messages import assistant, user
from rl_cli.data.hygiene.duplicates import Duplicates
from tests.data.rows_kit import needs_the_data_extra


def talk(text: str) -> list:  # type: ignore[type-arg]
    return [user("Tell me."), assistant(text)]


def test_thinking_makes_a_difference_for_equal_ones() -> None:
    found = Duplicates()
    thought = [user("a"), {**assistant("b"), "reasoning": "c"}]
    assert [found.is_new(each) for each in (thought, [user("a"), assistant("b")], thought)] == [
        True,
        True,
        False,
    ]


def test_near_ones_are_those_above_the_share() -> None:
    needs_the_data_extra()
    draw = random.Random(3)
    words = [f"{draw.randrange(10**6)}" for _ in range(400)]
    near, far = list(words), list(words)
    near[200] = "other"  # 5 of 400 shingles: similarity 0.97
    for at in range(0, 400, 8):
        far[at] = "other"  # 250 of 400: similarity 0.23
    found = Duplicates(0.85)
    assert [found.is_new(talk(" ".join(each))) for each in (words, near, far)] == [True, False, True]
    assert found.counts == {"near": 1}
    strict = Duplicates(0.99)
    assert [strict.is_new(talk(" ".join(each))) for each in (words, near, words)] == [True, True, False]
    # Scripts without blanks are compared too.
    chinese = "".join(chr(0x4E00 + draw.randrange(2000)) for _ in range(300))
    assert [found.is_new(talk(text)) for text in (chinese, chinese[:-1], chinese[::-1])] == [
        True,
        False,
        True,
    ]


@pytest.mark.soak
def test_many_rows_are_found_in_little_memory() -> None:
    """100 MB of rows with a tenth near ones."""
    needs_the_data_extra()
    import tracemalloc

    draw = random.Random(5)
    found, expected = Duplicates(0.85), 0
    tracemalloc.start()
    for number in range(5000):
        words = [f"w{draw.randrange(10**6)}" for _ in range(300)]
        assert found.is_new(talk(" ".join(words)))
        if number % 10 == 0:
            words[draw.randrange(300)] = "x"
            expected += not found.is_new(talk(" ".join(words)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"near duplicates found: {expected} of 500, {peak / 5000 / 1024:.1f} KB a row")
    assert expected >= 495
    assert peak / 5000 < 20_000
