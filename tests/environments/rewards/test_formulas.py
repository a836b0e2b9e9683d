"""A number in a formula is not its value; the side that solves an equation is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.rewards.numbers import grade_number

FORMULAS = (
    "18a|18ab|18xy|18i|18x+2|18n|18 x|18\\,x|f(18)|g(18)|18(2)|18(x)|18(x+1)|(18)(2)|2(18)|\\sin(18)|18 + x"
    "|18^2|18\\pi|\\frac{18}{x}|x^2=18|x^{2} = 18|2x = 18|x+1=18|x + y = 18|x - 2 = 18|xy = 18|-x = 18"
    "|x/2 = 18|\\frac{x}{2} = 18|\\sqrt{x}=18|\\log x = 18|x! = 18|(x+1)^2 = 18|\\lfloor x \\rfloor = 18"
    "|a + 18|sin 18|log 18|∛18|18‰|18个半|18千|18 lakh"
)
SOLVED = (
    "x=18|x = 18|n=18|a_1 = 18|x_{1} = 18|\\theta = 18|x' = 18|\\text{Total cost} = 18|f(3) = 18|9(2) = 18"
    "|2 \\times 9 = 18|3^2 + 9 = 18|\\sqrt{324} = 18|x = 36/2 = 18|A = lw = 18|P = 2l + 2w = 18|3 x 6 = 18"
    "|1800\\,cm / 100 = 18\\,m|9 m + 9 m = 18 m|60 km/h * 0.3 h = 18 km|$x + 5 = 23$, so $x = 18$"
    "|2x = 36 \\implies x = 18"
)


@pytest.mark.parametrize("formula", [*FORMULAS.split("|"), "|x| = 18"])
@pytest.mark.parametrize("form", ["\\boxed{{}}", "#### {}", "The answer is {}."])
def test_a_formula_is_no_number(formula: str, form: str) -> None:
    grade = grade_number("18", form.replace("{}", formula))
    assert not grade.correct
    assert grade.extracted != "18"


@pytest.mark.parametrize("answer", ["18(2)", "9(18)", "It is 9(18).", "(9)(18)"])
def test_a_product_alone_is_no_number(answer: str) -> None:
    assert grade_number("18", answer).extracted is None


@pytest.mark.parametrize("equation", SOLVED.split("|"))
@pytest.mark.parametrize("form", ["\\boxed{{}}", "#### {}", "The answer is {}."])
def test_the_side_that_solves_an_equation_is_the_value(equation: str, form: str) -> None:
    assert grade_number("18", form.replace("{}", equation)).correct


UNITS = "m|kg|cm|ml|L|h|s|mph|km/h|°C|%|m^2|m2|cm³|apples| apples| kWh| m| a day| x-rays|th|A|am| a.m.| ft|'s"


@pytest.mark.parametrize("unit", UNITS.split("|"))
def test_units_and_nouns_are_no_unknowns(unit: str) -> None:
    assert grade_number("18", f"The answer is 18{unit}.").correct


@given(st.integers(1, 10**6), st.sampled_from("abcxyzn"))
def test_a_coefficient_is_not_its_term(number: int, unknown: str) -> None:
    for form in ("{}{}", "{} {}", "{}{}^2", "{}({})", "2{1} = {0}", "{1}({0})", "{1} + {0}", "{1}^2 = {0}"):
        assert not grade_number(str(number), f"\\boxed{{{form.format(number, unknown)}}}").correct
    assert grade_number(str(number), f"\\boxed{{{unknown} = {number}}}").correct


@pytest.mark.parametrize("arrow", ["->", "-->", "=>", "→", "⇒", "⟶", "\\to", "$\\rightarrow$", "\\implies"])
def test_an_arrow_leads_to_the_value(arrow: str) -> None:
    for form in ("Answer {} 18", "Final answer {} **18**.", "5 + 13 {} 18", "2x = 36 {} x = 18"):
        assert grade_number("18", form.replace("{}", arrow)).correct, form
    assert not grade_number("18", f"18 {arrow} 20").correct
