r"""Does an answer state the right number?

Thinking never counts. Of what is left, the last explicit statement counts: a filled box, a #### line, "the
answer is N"; <answer> tags hold the answer, whatever stands around them. With none of these it is the last
number of the last sentence that has one. Values are compared exactly, as fractions; nothing is evaluated, and
the time is linear in the length of the text. Where readers may disagree (reasons: docs/graders.md):

    eighteen, 十八               18 where a statement begins with it, or as the whole answer; else no number
    two and a half               2.5, likewise
    1,8    1,23    1.800         1.8 and 1.23 where a statement names one value, else a list; 1.8, never 1800
    1.234,56   1'800   1 800     1234.56 and 1800; "18 18" is no group of thousands, and refused
    ($5)                         -5 as the whole statement; 5 after words: "five dollars ($5)"
    10 - 3                       refused: a calculation; "10 - 3 = 7" is 7
    3/4                          the fraction
    18 left out of 24            18
    28%   18 cents               28 or 0.28; 18 or 0.18; but 0.28 is not 28
    1.8 million   $1.8k          1800000, 1800; a dozen is a unit
    0.333                        1/3: see ROUNDING; 0.000 is no rounding of anything
    18 or 20   15-18   18 ± 2    refused, as are 12:00, 3:2 and lists; "3/4 or 0.75" is one value
    18 m^2   18th   18!   ~18    18; 18^2, 18\pi, 18x, 18a, 18(2), f(18) and a factorial in a box are refused
    x = 18   A = lw = 18         18; x^2 = 18, 2x = 18 and x + y = 18 are refused: they state no x
    at least 18   18 or more     refused, as is any bound: under, over, almost, up to, <, 18+
    18 if x > 0, otherwise 19    refused, as are "18 unless" and "18 if x > 0"; "18 if he works" is 18
    not 18 but 20                20; refused where no other number follows: "I don't think it is 18"
    ~~18~~   <del>18</del>       refused; "~~20~~ 18" is 18
    Is it 18?                    refused; "Is it 18? Yes." is 18
    an unclosed \boxed{18        refused: the reply was cut; an unclosed <answer> counts
    two boxes                    the last; refused if joined by a comma, "and", "or"
    18. No wait, 20.             20; refused where nothing replaces what was taken back
    18, blank line, Note: 30     18: closing notes and offers to the reader state nothing

ROUNDING: a gold with no finite decimal form (its lowest denominator has a prime factor other than 2 and 5) is
also met by its value rounded to as many decimals as the answer writes, where these are three or more and
not all digits are zero. Ties round to the even digit. No other gold is met by a rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from environments.rewards.answer_text import visible
from environments.rewards.plain_text import plain
from environments.rewards.quantities import Quantity, Refused, first_quantity
from environments.rewards.statements import stated_quantity
from environments.rewards.withdrawn import without_denied, without_struck

FEWEST_DECIMALS = 3
"""Of the rounding of a gold that has no decimal form."""
Gold: TypeAlias = str | int | float | Fraction
NO_GOLD = "the gold answer is not a number"


@dataclass(frozen=True)
class Grade:
    correct: bool
    extracted: str | None
    """The number as the answer writes it; None where none was found or the statement was refused."""
    reason: str


def grade_number(gold: Gold, answer: str) -> Grade:
    """Compares the number that `answer` states with `gold`: a number, or a solution that ends in `#### N`.

    A float counts as it is written: 0.1 is one tenth.

    Standard library only, linear in the length of `answer`. Raises nothing, whatever the texts hold.
    """
    right = _gold(_written(gold))
    if right is None:
        return Grade(False, None, NO_GOLD)
    try:
        stated = stated_quantity(without_denied(plain(visible(without_struck(answer)))))
    except Refused as refusal:
        return Grade(False, None, str(refusal))
    if stated is None:
        return Grade(False, None, "no answer extracted: it states no number")
    correct = _equal(right, stated)
    return Grade(correct, stated.text, "equal" if correct else "another number")


def read_gold(gold: Gold) -> Fraction | None:
    """The number of a gold answer (what follows its last ####, if it has one); None where it states none."""
    quantity = _gold(_written(gold))
    return quantity.value if quantity else None


def _written(gold: Gold) -> str:
    try:
        return str(gold)
    except ValueError:  # more digits than Python writes, and than are read
        return ""


@lru_cache(maxsize=4096)
def _gold(gold: str) -> Quantity | None:
    text = plain(gold.rsplit("####", 1)[-1])
    try:
        return stated_quantity(text) if "boxed" in text else first_quantity(text.strip())
    except Refused:
        return None


def _equal(gold: Quantity, stated: Quantity) -> bool:
    if stated.value == gold.value:
        return True
    if stated.hundredth != gold.hundredth:
        return gold.value * (100 if stated.hundredth else 1) == stated.value * (
            1 if stated.hundredth else 100
        )
    decimals = stated.decimals
    return (
        decimals >= FEWEST_DECIMALS
        and stated.value != 0
        and not _terminates(gold.value)
        and round(gold.value, decimals) == stated.value
    )


def _terminates(value: Fraction) -> bool:
    return pow(10, value.denominator.bit_length(), value.denominator) == 0
