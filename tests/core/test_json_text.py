from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from rl_cli.core.json_text import load_json, parse_json, row_json, to_json

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.binary(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.text() | st.integers() | st.booleans() | st.none() | st.tuples(st.integers()),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(ANYTHING)
def test_always_valid_json_in_utf8(value: Any) -> None:
    text = to_json(value)
    json.loads(text.encode().decode(), parse_constant=lambda name: pytest.fail(name))


@given(st.text(st.characters(categories=["Cs", "L"])))
def test_surrogates_never_reach_the_text(text: str) -> None:
    assert json.loads(to_json([text]).encode())[0].encode().decode() == json.loads(to_json([text]))[0]


class Colour(Enum):
    RED = "red"


class Word(StrEnum):
    STOP = "stop"


@dataclass
class Point:
    x: float
    where: Path


class Model(BaseModel):
    values: list[float]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Colour.RED, "red"),
        (Word.STOP, "stop"),
        (Point(float("inf"), Path("/a")), {"x": "Infinity", "where": "/a"}),
        (Model(values=[1.0, float("nan")]), {"values": [1.0, "NaN"]}),
        (numpy.float32(0.5), 0.5),
        (numpy.array([[1, 2]]), [[1, 2]]),
        (numpy.float64("nan"), "NaN"),
        ({3, 1}, [1, 3]),
        ({(1, 2): {"x": None}}, {"[1, 2]": {"x": None}}),
        (b"\xff", "\ufffd"),
    ],
)
def test_stand_ins(value: Any, expected: Any) -> None:
    assert json.loads(to_json({"value": value})) == {"value": expected}


def test_an_integer_of_thousands_of_digits_is_named_rather_than_raised() -> None:
    assert "bits" in json.loads(to_json({"n": 10**5000}))["n"]


def test_a_value_that_contains_itself_raises() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(RecursionError):
        to_json(value)


FIGURES = st.floats() | st.integers() | st.text() | st.sampled_from(["NaN", "-Infinity", "half \ud83d"])


@given(st.dictionaries(st.text() | st.just("\udc00"), FIGURES | st.dictionaries(st.text(), FIGURES)))
def test_rows_are_written_and_read_fast_as_they_are_slowly(row: dict[str, Any]) -> None:
    text = row_json(row).decode()
    assert "\n" not in text
    assert parse_json(text) == json.loads(text) == json.loads(to_json(row))


@pytest.mark.parametrize(
    "text",
    [
        *(
            '{"a": NaN, "b": -Infinity}',
            '{"a": 1, "a": 2}',
            "[1e999, -0.0, 1E5]",
            '"\\ud800"',
            "[" * 300 + "]" * 300,
        ),
        *("", "01", "{", '{"a": 1}x', '"\x01"', "nan", "\ufeff{}", "[" * 200_000),
    ],
)
def test_what_is_read_fast_is_what_json_reads(text: str) -> None:
    def read(loads: Any) -> str:
        try:
            return repr(loads(text))
        except (ValueError, RecursionError) as error:
            return type(error).__name__

    assert read(parse_json) == read(load_json)
