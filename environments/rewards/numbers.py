"""Does an answer state the right number?

The answer is read from where it is stated most explicitly: the last box or `####` line, else the last "the
answer is", else the last number of the text. Thinking is removed first. What names several values (18 or 20,
15-18, 18 ± 2, a list), a calculation or a power is refused. Values are compared exactly, as fractions;
nothing is evaluated, and the time is linear in the length of the text.

Not covered yet: number words, decimal commas, units that must match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from environments.rewards.answer_text import plain, visible

LONGEST_NUMBER = 400
"""Digits; a longer number is refused."""
LONGEST_STATEMENT = 400
"""Characters after "the answer is" in which its number stands."""
MOST_STATEMENTS = 50
"""Of "the answer is", from the end, that are searched for a number."""
LARGEST_EXPONENT = 100
"""Of powers of ten, such as 2e3."""


@dataclass(frozen=True)
class Grade:
    correct: bool
    extracted: str | None
    """The number as the answer writes it; None where none was found or the statement was refused."""
    reason: str


@dataclass(frozen=True)
class _Value:
    value: Fraction
    text: str
    hundredth: bool = False
    """Written in percent or cents, so that a hundredth of it is the same statement."""
    decimals: int = 0


class _Refused(Exception):
    """The statement is there, and states no single number."""


_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_^.,])(?P<sign>[-+]?)\s?[$€£¥₹]?\s?(?P<sign2>[-+]?)"
    r"(?P<digits>\d+(?:,\d+)*(?:\.\d+)?|\.\d+)"
    r"(?:[eE](?P<e>[-+]?\d+)(?![A-Za-z]))?"
    r"(?:\s+(?P<upper>\d+)/(?P<lower>\d+)|\s*/\s*(?P<over>\d+(?:\.\d+)?))?"
    r"(?:\s*(?:x|×|\*|\\times|\\cdot)\s*10\s*\^\s*\{?\s*(?P<ten>[-+]?\d+)\s*\}?)?"
    r"(?:(?P<scale>\s*(?:hundred|thousand|million|billion|trillion|万|亿)|k\b))?"
    r"(?:\s*(?P<hundredth>%|percent\b|cents?\b|¢))?"
)
_GROUPED = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
_SCALES = {"hundred": 2, "thousand": 3, "k": 3, "million": 6, "billion": 9, "trillion": 12, "万": 4, "亿": 8}
_SEVERAL = re.compile(
    r"\s*(?:\bor\b|\band\b|\bto\b|或|或者|和|至|到|±|\+/-|\\pm|,|[-~+*×/:]|x|\\times|\\cdot)\s*[$€£¥₹]?\.?\d",
    re.I,
)
_POWER = re.compile(r"\s*(?:\^|[⁰¹²³⁴-⁹])")
_RANGE_BEFORE = re.compile(r"(?:\bbetween|介于)\s*$", re.I)
_VALUE_BEFORE = re.compile(r"\d\S{0,12}\s*(?:\bor\b|或|或者|±|\\pm|\bto\b|,|[~/:^]|(?<=\d)-)\s*$", re.I)

_BOX = re.compile(r"\\(?:f?boxed|fbox)\s*\{")
_OTHER_BOX = re.compile(r"[^{}]*\}+[\s$]*(?:or|或|,)[\s$]*")
_BRACE = re.compile(r"[{}]")
_STATEMENT = re.compile(
    r"(?:\banswers?\b[^.:=\n\d]{0,60}?(?:\bis\b|\bare\b|\bequals\b|[:=])|答案[^。：:\n\d]{0,12}?(?:是|为|[:=]))"
    r"\s*",
    re.I,
)
_SENTENCE_END = re.compile(r"[.!?](?!\d)|[。!;；\n]")


def grade_number(answer_text: str, gold: str) -> Grade:
    """Compares the number that `answer_text` states with `gold`: a number, or text that ends in `#### N`.

    A non-terminating gold (1/3) accepts its rounding to three or more decimals.
    """
    right = read_gold(gold)
    if right is None:
        return Grade(False, None, "the gold answer is not a number")
    try:
        stated = _stated(plain(visible(answer_text)))
    except _Refused as refusal:
        return Grade(False, None, str(refusal))
    if stated is None:
        return Grade(False, None, "the answer states no number")
    correct = stated.value == right or (stated.hundredth and stated.value / 100 == right)
    if not correct and stated.decimals >= 3 and not _terminates(right):
        correct = round(right, stated.decimals) == stated.value
    return Grade(correct, stated.text, "equal" if correct else "another number")


@lru_cache(maxsize=4096)
def read_gold(gold: str) -> Fraction | None:
    """The number of a gold answer (what follows its last ####, if it has one); None where it states none."""
    text = plain(gold.rsplit("####", 1)[-1])
    try:
        value = _first_value(text)
    except _Refused:
        return None
    return value.value if value else None


def _stated(text: str) -> _Value | None:
    """The value that the text states most explicitly. Raises _Refused where that is no single number."""
    box, marker = _last_box(text), text.rfind("####")
    if box and box[0] > marker:
        return _first_value(box[1])
    if marker >= 0:
        line = text[marker:].lstrip("#").lstrip(" ").split("\n", 1)[0]
        return _first_value(line)
    for statement in list(_STATEMENT.finditer(text))[-MOST_STATEMENTS:][::-1]:
        said = text[statement.end() : statement.end() + LONGEST_STATEMENT]
        end = _SENTENCE_END.search(said)
        value = _first_value(said[: end.start()] if end else said)
        if value:
            return value
    return _last_value(text)


def _last_box(text: str) -> tuple[int, str] | None:
    """Position and content of the last box that holds something."""
    if "\\" not in text:
        return None
    boxes = list(_BOX.finditer(text))
    for place in range(len(boxes) - 1, -1, -1):
        box, depth = boxes[place], 1
        for brace in _BRACE.finditer(text, box.end()):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                content = text[box.end() : brace.start()].strip("{} ")
                break
        else:
            raise _Refused("the box is not closed")
        if place and _OTHER_BOX.fullmatch(text, boxes[place - 1].end(), box.start()):
            raise _Refused("several boxes")
        if content:
            return box.start(), content
    return None


def _first_value(text: str) -> _Value | None:
    """The value of a statement: its first number, or the first after the last equals sign."""
    text = re.sub(r"\([^()]*\)", " ", text) if re.sub(r"\([^()]*\)", "", text).strip(" .") else text
    text = text.rsplit("=", 1)[-1]
    text = re.sub(r"\bnot\s+[$€£¥₹]?[\d.,]*\d", " ", text)
    number = _NUMBER.search(text)
    return _checked(text, number) if number else None


def _last_value(text: str) -> _Value | None:
    for line in reversed(text.split("\n")):
        numbers = list(_NUMBER.finditer(line))
        if numbers:
            if _VALUE_BEFORE.search(line[max(0, numbers[-1].start() - 40) : numbers[-1].start()]):
                raise _Refused("several values")
            return _checked(line, numbers[-1])
    return None


def _checked(text: str, number: re.Match[str]) -> _Value:
    """The value of a match, if what stands around it leaves it alone."""
    before, after = text[max(0, number.start() - 40) : number.start()], text[number.end() : number.end() + 40]
    if _POWER.match(after):
        raise _Refused("a power is not evaluated")
    if _SEVERAL.match(after) or _RANGE_BEFORE.search(before):
        raise _Refused("several values, or a calculation")
    digits, lower = number["digits"], number["lower"] or number["over"] or ""
    exponents = [int(number[power][:9]) for power in ("e", "ten") if number[power]]
    if max(len(digits), len(lower)) > LONGEST_NUMBER or any(abs(e) > LARGEST_EXPONENT for e in exponents):
        raise _Refused("the number is too large")
    if "," in digits and not _GROUPED.fullmatch(digits):
        raise _Refused("several values, or digits grouped in an unknown way")
    value = Fraction(digits.replace(",", ""))
    if lower and not Fraction(lower):
        raise _Refused("division by zero")
    if number["over"]:
        value /= Fraction(lower)
    elif lower:
        value += Fraction(int(number["upper"][:LONGEST_NUMBER]), int(lower))
    value *= Fraction(10) ** (sum(exponents) + _SCALES.get((number["scale"] or "").strip(), 0))
    value = -value if "-" in (number["sign"], number["sign2"]) else value
    return _Value(value, number[0].strip(), bool(number["hundredth"]), len(digits.partition(".")[2]))


def _terminates(value: Fraction) -> bool:
    return pow(10, value.denominator.bit_length(), value.denominator) == 0
