from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.calls import call, context
from tools.everyday.calculator import evaluate
from tools.spec import ToolError

NUMBERS = st.integers(0, 10**6).map(str) | st.decimals(0, 1000, places=3).map(str)
EXPRESSIONS = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", " + ", " * "]), inner).map("".join),
        inner.map("({})".format),
        inner.map("-{}".format),
        st.tuples(inner, st.integers(-3, 3)).map(lambda t: f"({t[0]})**{t[1]}"),
        st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 2)).map(
            lambda t: f"{t[0]}**{t[1]}**{t[2]}"
        ),
        st.integers(0, 9).map("-{}**2".format),
    ),
    max_leaves=8,
)


def exactly(expression: str) -> Fraction:
    """Python's own value, every literal made a Fraction."""
    import re

    return Fraction(eval(re.sub(r"\d+(\.\d+)?", r"Fraction('\g<0>')", expression), {"Fraction": Fraction}))


@given(EXPRESSIONS)
def test_agrees_with_pythons_own_fractions(expression: str) -> None:
    try:
        expected: Fraction | None = exactly(expression)
    except ZeroDivisionError:
        expected = None
    outcome = _outcome(expression)
    assert outcome in ("too_large", expected if expected is not None else "division_by_zero")


def _outcome(expression: str) -> Fraction | str:
    try:
        return evaluate(expression)
    except ToolError as error:
        return error.type


@given(st.text("0123456789.+-*/() ", max_size=40) | st.text(max_size=20))
def test_any_text_is_a_number_or_an_explanation(text: str) -> None:
    result = call("calculator", {"expression": text}, toolsets=("math",)) if text.isascii() else {"ok": False}
    if result["ok"]:
        assert isinstance(result["result"], int | float)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("48/2+48", 72),
        ("0.1+0.2", 0.3),
        ("2**10", 1024),
        ("-2**2", -4),
        ("2**-1", 0.5),
        ("4**0.5", 2),
        ("7/7", 1),
        ("10/4", 2.5),
        (".5*2", 1),
        ("(-1)**99999", -1),
        ("2**3**2", 512),
        ("- -3", 3),
        ("0**0", 1),
    ],
)
def test_whole_results_are_integers(expression: str, value: float) -> None:
    result = call("calculator", {"expression": expression}, given=context(toolsets=("math",)))["result"]
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    ("expression", "type", "words"),
    [
        ("", "invalid_expression", "expected a number at character 0"),
        (
            "1,000 + 1",
            "invalid_expression",
            "expected an operator or the end at character 1 of '1,000 + 1', found ','",
        ),
        ("2 x 3", "invalid_expression", "found 'x'"),
        ("2^3", "invalid_expression", "found '^'"),
        ("(1 + 2", "invalid_expression", "expected ')'"),
        ("1.2.3", "invalid_expression", "expected a number"),
        ("__import__('os')", "invalid_expression", "found '_'"),
        ("5 % 2", "invalid_expression", "found '%'"),
        ("1e5", "invalid_expression", "found 'e'"),
        ("٣+1", "invalid_expression", "expected a number"),
        ("1/(2-2)", "division_by_zero", "division by zero"),
        ("0**-1", "division_by_zero", "zero"),
        ("9**9**9", "too_large", "too large"),
        ("*".join(["99999999"] * 55), "too_large", "too large"),
        ("(-8)**0.5", "invalid_expression", "no real"),
        ("(" * 200, "invalid_expression", "50 deep"),
        ("2" + "**2" * 160, "invalid_expression", "50 deep"),
        ("1" + "+1" * 300, "invalid_expression", "longer than 500"),
        ("9" * 490 + "**2", "too_large", "too large"),
    ],
)
def test_what_is_no_arithmetic_is_explained(expression: str, type: str, words: str) -> None:
    result = call("calculator", {"expression": expression}, toolsets=("math",))
    if type == "too_large" and result["ok"]:
        pytest.fail(f"{len(str(result['result']))} digits")
    assert result["error"]["type"] == type
    assert words in result["error"]["message"]
