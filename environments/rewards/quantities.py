"""One exact number of a statement; what names several values or needs a calculation is refused."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from fractions import Fraction

from environments.rewards.bounds import is_bound
from environments.rewards.conditions import is_conditional
from environments.rewards.formulas import is_in_formula, solves_nothing
from environments.rewards.plain_text import CURRENCY, CURRENCY_SIGNS

LONGEST_NUMBER = 1000
"""Digits; a longer number is refused."""
LARGEST_EXPONENT = 100
"""Of powers of ten, such as 2e3."""
WINDOW = 120
"""Characters on each side of a number that may say that it is not the value."""


@dataclass(frozen=True)
class Quantity:
    value: Fraction
    text: str
    """As the statement writes it."""
    hundredth: bool = False
    """Written in percent or cents, so that a hundredth of it is the same statement."""
    decimals: int = 0


ON_CONDITION = "it depends on a condition"


class Refused(Exception):
    """The statement is there, and states no single number; says why."""


_NUMBER = re.compile(
    rf"(?<![A-Za-z0-9_^])(?<!\d[.,])(?P<sign>[-+]?)\s?{CURRENCY}?\s?(?P<sign2>[-+]?)"
    r"(?P<digits>\d++(?:[.,_]\d++)*+|(?<![A-Za-z0-9_.])\.\d++)"
    r"(?:[eE](?P<e>[-+]?\d++)(?![A-Za-z]))?"
    r"(?:\s+(?P<upper>\d++)/(?P<lower>\d++)|\s*/\s*(?P<over>-?\d++(?:,\d{3})*+(?:\.\d++)?))?"
    r"(?:\s*(?:x|×|\*|\\times|\\cdot)\s*10\s*\^\s*(?P<ten>[-+]?\d++))?"
    r"(?P<scale>\s*(?:hundred|thousand|million|billion|trillion|bn|lakhs?|crores?)\b|k\b|[KMB]\b"
    r"|\s*(?:[万亿]|千(?![克米瓦卡焦帕])|百(?!分)))?"
    r"(?:\s*(?P<hundredth>%|percent\b|per\s?cent\b|cents?\b|¢))?"
)
_SCALES = {"hundred": 2, "thousand": 3, "k": 3, "million": 6, "m": 6, "billion": 9, "b": 9, "bn": 9}
_SCALES |= {
    "trillion": 12,
    "lakh": 5,
    "lakhs": 5,
    "crore": 7,
    "crores": 7,
    "百": 2,
    "千": 3,
    "万": 4,
    "亿": 8,
}

_POINT = re.compile(r"(\d*\.)?\d+")
_THOUSANDS = re.compile(
    r"[1-9]\d{0,2}(?:(,|_)\d{3})(?:\1\d{3})*(?:\.\d+)?|[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d+)?"
)
_DOTTED_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:(?:\.\d{3})+,\d+|(?:\.\d{3}){2,})")
_DECIMAL_COMMA = re.compile(r"0,\d+|\d+,\d{1,2}")
_SPACED_THOUSANDS = re.compile(r"(?<![\d.,] )(?<![\d.,])([1-9]\d{0,2})((?: \d{3})+)(?![\d/]| \d)")

_BRACES = str.maketrans("{}", "  ")
_ASIDE = re.compile(
    r"\((?!(?<=[\d)]\()\s*(?:-?\d|[A-Za-z]\s*[-+*/)]))(?!\s*(?:or|and|to|maybe|perhaps|possibly|unless|otherwise|\+|±|或)\b|\s*(?:if|when|for)\s+[a-z]\s*[<>≤≥≠])[^()]*\)(?!\s?[\^(*/])",
    re.I,
)
"""In parentheses, which are no factor: 18(2), 18(x)."""
_NEGATIVE_AMOUNT = re.compile(rf"((?:^|\bis|\bare|[:=])\s*)\(\s*({CURRENCY})\s*([\d.,]*\d)\s*\)", re.I)
_JOIN = (
    r"(?:or|and|to|vs\.?|versus|±|\+/-|\\[a-z]*pm|x|\\times|\\cdot|\\div"
    r"|或者|或|和|至|到|还是|[-~+*×÷/,;&|^]|:(?=\S)|(?<=\s):)"
)
_SEVERAL = re.compile(
    rf"(?:[\s(]*{_JOIN}\s*(?:or\s|maybe\s|perhaps\s|possibly\s|even\s|about\s|\()?\s*-?|\s+|,\s*[A-Za-z]\s*=\s*-?)"
    rf"{CURRENCY}?-?\.?\d",
    re.I,
)
_SEVERAL_WITH_UNITS = re.compile(
    rf"(?:\s*[A-Za-z°%'{CURRENCY_SIGNS}\u4e00-\u9fff]{{1,15}}){{0,2}}\s*(?:\band|\bor|\bto|-|和|到|至)\s*{CURRENCY}?\d",
    re.I,
)
_HEDGE = re.compile(
    r"[^.;!\n\d]{0,50}?"
    r"(?:\b(?:or|maybe|perhaps|possibly|alternatively|(?:could|might|may) (?:also )?be)\b|或|可能|也许)"
    r"[^.;\n\d]{0,30}\d",
    re.I,
)
_OR = re.compile(r"[^\d\n]{0,20}?(?:\bor\b|或)[^\d\n]{0,12}?(?=-?\.?\d)", re.I)
_OPERAND_BEFORE = re.compile(
    r"(?:[\d)]|(?<![A-Za-z])[B-Zb-z])\s*[-+]\W*$|(?<![A-Za-z])[Aa](?:[-+]|\s*[-+]\s+)$"
)
"""Of a sign that is an operator: b -18 and a - 18, but not "a -18"."""
_MAYBE_BEFORE = re.compile(
    r"\b(?:(?:could|might|may) (?:also )?be|maybe|perhaps|possibly|alternatively,?)\s*$", re.I
)
_EQUATION = re.compile(
    r"\s*(?:[A-Za-z%$]{1,15}\s*)?(?:[-+*/×÷=^]|\\times|\\cdot|\\div|x\s*[\d(])|\s*[)\]]+\s*[-+*/=^(]|\(\s*-?\d"
)
_OTHER_SIDE = re.compile("[=≈]")
_OF_BEFORE = re.compile(r"\b(?:out of|of the|of all)\s*$", re.I)
_PAIRED = (_SEVERAL, _SEVERAL_WITH_UNITS)
_JOINED = (*_PAIRED, _HEDGE)


def first_quantity(statement: str, boxed: bool = False) -> Quantity | None:
    """The number that an explicit statement names: its first, or the last side of the equations it begins.

    Raises:
        Refused: It names several values, or a calculation, a power, a bound.
    """
    text = _prepared(statement)
    number = _NUMBER.search(text)
    while number and (_EQUATION.match(text, number.end()) or solves_nothing(_before(text, number))):
        side = _OTHER_SIDE.search(text, number.end())
        beyond = _NUMBER.search(text, side.end()) if side else None
        if beyond is None:
            break
        number = beyond
    if number is None:
        return None
    if boxed and text.startswith("!", number.end()):
        raise Refused("a factorial is not evaluated")
    return _checked(text, number, comma_is_point=not boxed)


def last_quantity(sentence: str) -> Quantity | None:
    """The number that a sentence ends with, if nothing says that it is not the answer. Raises Refused."""
    text = _prepared(re.sub(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+(?=\S*\d)", "", sentence))
    numbers = deque(_NUMBER.finditer(text), maxlen=2)
    if not numbers:
        return None
    number = numbers[-1]
    if len(numbers) > 1 and _OF_BEFORE.search(text[: number.start()][-20:]):
        number = numbers[-2]
    elif len(numbers) > 1:
        if _MAYBE_BEFORE.search(text[max(0, number.start() - 40) : number.start()]):
            raise Refused("several values")
        if is_conditional("", text[numbers[-2].end() : numbers[-2].end() + WINDOW]):
            raise Refused(ON_CONDITION)
        _refuse_several(text[: number.end()], numbers[-2], _PAIRED, number.start())
    return _checked(text, number, comma_is_point=False)


def _prepared(text: str) -> str:
    """Without braces, asides in parentheses, and spaces between thousands."""
    text = _NEGATIVE_AMOUNT.sub(r"\1-\2\3", text.translate(_BRACES))
    outside = _ASIDE.sub(" ", text)
    return _SPACED_THOUSANDS.sub(_without_spaces, outside if re.search(r"\d", outside) else text)


def _without_spaces(run: re.Match[str]) -> str:
    return run[0].replace(" ", "")


def _before(text: str, number: re.Match[str]) -> str:
    return text[max(0, number.start() - WINDOW) : number.start()]


def _checked(text: str, number: re.Match[str], comma_is_point: bool) -> Quantity:
    """The value of a match, if what stands around it leaves it alone."""
    before = _before(text, number)
    after = text[number.end() : number.end() + WINDOW]
    if is_in_formula(before, after):
        raise Refused("a calculation, a power or a formula is not evaluated")
    if is_bound(before, after):
        raise Refused("a bound or a range, not a value")
    if is_conditional(before, after):
        raise Refused(ON_CONDITION)
    if solves_nothing(before):
        raise Refused("an equation with an unknown, not its solution")
    if number["sign"] and _OPERAND_BEFORE.search(before + text[number.start() : number.start("digits")]):
        raise Refused("several values, or a calculation")
    quantity = _quantity(number, comma_is_point)
    _refuse_several(text, number, _JOINED)
    return quantity


def _refuse_several(
    text: str, number: re.Match[str], joined: tuple[re.Pattern[str], ...], beyond: int = 0
) -> None:
    """Raises Refused if another number, not before `beyond`, is joined to this one and is not equal to it."""
    after = text[number.end() : number.end() + WINDOW]
    joins = (join.match(after) for join in joined)
    if any(join and number.end() + join.end() > beyond for join in joins):
        other = _OR.match(text, number.end())
        again = _NUMBER.match(text, other.end()) if other else None
        if not again or _quantity(again).value != _quantity(number).value:
            raise Refused("several values, or a calculation")


def _quantity(number: re.Match[str], comma_is_point: bool = True) -> Quantity:
    digits, lower = number["digits"], (number["lower"] or number["over"] or "").replace(",", "")
    exponents = [int(number[power][:9]) for power in ("e", "ten") if number[power]]
    if max(len(digits), len(lower), len(number["upper"] or "")) > LONGEST_NUMBER:
        raise Refused("the number is too long")
    if any(abs(e) > LARGEST_EXPONENT for e in exponents):
        raise Refused("the exponent is too large")
    digits = _with_point(digits, comma_is_point)
    value = Fraction(digits)
    if lower and not Fraction(lower):
        raise Refused("a division by zero")
    if number["over"]:
        value /= Fraction(lower)
    elif lower:
        value += Fraction(int(number["upper"]), int(lower))
    value *= Fraction(10) ** (sum(exponents) + _SCALES.get((number["scale"] or "").strip().lower(), 0))
    value = -value if "-" in (number["sign"], number["sign2"]) else value
    return Quantity(value, number[0].strip(), bool(number["hundredth"]), len(digits.partition(".")[2]))


def _with_point(digits: str, comma_is_point: bool) -> str:
    """Digits without separators of thousands, and with a decimal point if anything."""
    if _POINT.fullmatch(digits):
        return digits
    if _THOUSANDS.fullmatch(digits):
        return digits.replace(",", "").replace("_", "")
    if _DOTTED_THOUSANDS.fullmatch(digits):
        return digits.replace(".", "").replace(",", ".")
    if comma_is_point and _DECIMAL_COMMA.fullmatch(digits):
        return digits.replace(",", ".")
    raise Refused("several values, or digits grouped in an unknown way")
