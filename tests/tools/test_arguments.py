from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.calls import call, error

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = ("text", "count", "ratio", "mode", "tags", "options", "point", "json", "model_copy")


@pytest.mark.parametrize("nothing", [None, "", " \n", "null", {}, "{}"])
def test_nothing_is_no_arguments(nothing: Any) -> None:
    assert call("whoami", nothing)["caller"] == "chat"
    assert error("echo", nothing)[1].startswith(
        'missing argument "text" | call echo(text: string, count: integer'
    )


@pytest.mark.parametrize("as_text", [True, False])
def test_arguments_arrive_with_their_types_and_defaults(as_text: bool) -> None:
    arguments = {
        "text": "hé 😀",
        "count": 3,
        "ratio": 1,
        "tags": ["a"],
        "options": {"x": [1, None]},
        "point": {"x": 2},
    }
    result = call("echo", json.dumps(arguments) if as_text else arguments)
    assert result == {
        "ok": True,
        **arguments,
        "ratio": 1.0,
        "mode": "plain",
        "point": {"x": 2, "y": 0},
        "json": 0,
        "model_copy": False,
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("{text: 1}", "not JSON"),
        ("{'text': 'x'}", "not JSON"),
        ('{"text": "x"} {"text": "y"}', "Extra data"),
        ('```json\n{"text": "x"}\n```', "not JSON"),
        ('{"text": "x",}', "not JSON"),
        ('{"text": "x', "Unterminated string"),
        ("[]", "must be a JSON object, not a list"),
        ('"{}"', "must be a JSON object, not text"),
        ("true", "must be a JSON object, not a boolean"),
        ("3", "must be a JSON object, not a number"),
        (["x"], "must be a JSON object, not a list"),
        ('{"text": "x", "text": "y"}', '"text" is given twice'),
        ('{"text": "x", "ratio": NaN}', "NaN is not a JSON number"),
        ('{"text": "x", "ratio": 1e999}', "Out of range"),
        ({"text": "x", "ratio": float("nan")}, "Out of range"),
        ('{"text": "x", "count": ' + "9" * 5000 + "}", "4300 digits"),
        ('{"text": "\\ud83d"}', "surrogate"),
        ({"text": "\ud83d"}, "surrogate"),
        ({"text": b"x"}, "JSON cannot"),
        ("[" * 100_000, "nested too deeply"),
        ('{"text": "x", "options": ' + '{"a":' * 700 + "1" + "}" * 701, "nested too deeply"),
        ({"text": "x", "count": "3"}, '"count" must be a valid integer, not "3"'),
        ({"text": "x", "count": True}, '"count" must be a valid integer, not true'),
        ({"text": "x", "count": 1.5}, '"count" must be a valid integer, not 1.5'),
        ({"text": "x", "count": None}, '"count" must be a valid integer, not null'),
        ({"text": 3}, '"text" must be a valid string, not 3'),
        ({"text": "x", "ratio": "0.5"}, '"ratio" must be a valid number, not "0.5"'),
        ({"text": "x", "mode": "quiet"}, "must be 'plain' or 'loud', not \"quiet\""),
        ({"text": "x", "tags": "a"}, '"tags" must be a valid array'),
        ({"text": "x", "point": {"x": 1, "z": "?"}, "json": 10}, "less than or equal to 9"),
        ({"text": "x", "point": {"x": "1"}}, '"point.x" must be a valid integer'),
        ({"txt": "x"}, 'unknown argument "txt", did you mean text?'),
        ({"text": "x", "context": 1}, 'unknown argument "context"'),
        ({"text": "x", "p0": "y"}, 'unknown argument "p0"'),
        ({"text": "x", "\ud800": 1}, "surrogate"),
    ],
)
def test_what_does_not_fit_is_said_and_nothing_is_guessed(arguments: Any, words: str) -> None:
    kind, text = error("echo", arguments)
    assert kind == "invalid_arguments"
    assert words in text
    assert len(text) < 2000


def test_every_problem_is_named_at_once() -> None:
    _, text = error("echo", {"txt": "x", "count": "3", "mode": 1})
    assert all(words in text for words in ('missing argument "text"', '"count"', '"mode"', '"txt"'))


@pytest.mark.parametrize("name", ["ech", "Echo ", "", "x" * 1_000_000, None, 3, "\ud800", "echo\x00"])
def test_an_unknown_tool_is_answered_with_the_nearest_names(name: Any) -> None:
    kind, text = error(name)
    assert kind == "unknown_tool"
    assert len(text) < 2000
    if name in ("ech", "Echo "):
        assert "did you mean echo" in text


@given(st.text() | st.binary() | JSON | st.integers())
def test_no_arguments_whatever_end_in_anything_but_a_result(arguments: Any) -> None:
    call("echo", arguments)


@given(st.dictionaries(st.sampled_from(NAMES), JSON))
def test_what_is_accepted_arrives_unchanged(arguments: dict[str, Any]) -> None:
    result = call("echo", json.dumps(arguments))
    if result["ok"]:
        point = arguments.pop("point", None)
        assert all(result[name] == value for name, value in arguments.items())
        assert (result["point"] is None) == (point is None)
