"""Exact arithmetic for models that add up badly."""

from __future__ import annotations

from fractions import Fraction

from tools.dispatcher import ToolError, tool

LONGEST = 500
"""Characters of an expression."""
LARGEST_BITS = 1024
"""Numbers with more bits than this, above or below the fraction line, are refused."""


@tool(toolset="math")
async def calculator(expression: str) -> int | float:
    """Evaluates an arithmetic expression exactly and returns the number.

    Knows + - * / ** and parentheses. Whole results are integers, others decimals.

    Args:
        expression: For example "(48 + 48 / 2) * 3".
    """
    if len(expression) > LONGEST:
        raise ToolError("invalid_expression", f"the expression is longer than {LONGEST} characters")
    return as_number(evaluate(expression))


def evaluate(expression: str) -> Fraction:
    """The exact value. Precedence and associativity are Python's; `^` is not a power.

    Raises:
        ToolError: It is no arithmetic, divides by zero, or becomes too large.
    """
    parser = _Parser(expression)
    value = parser.sum()
    if not parser.at_end():
        raise parser.error()
    return value


def as_number(value: Fraction) -> int | float:
    """An int where exact, else the nearest float.

    Raises:
        ToolError: The value is too large for a float.
    """
    if value.denominator == 1:
        return value.numerator
    try:
        return float(value)
    except OverflowError:
        raise ToolError("too_large", "the result is too large") from None


class _Parser:
    """Recursive descent over: sum, product, sign, power, atom (from loosest to tightest)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.depth = 0

    def sum(self) -> Fraction:
        self.depth += 1
        if self.depth > 50:
            raise ToolError("invalid_expression", "the parentheses are nested more than 50 deep")
        value = self.product()
        while operator := self.take("+", "-"):
            right = self.product()
            value = self.bounded(value + right if operator == "+" else value - right)
        self.depth -= 1
        return value

    def product(self) -> Fraction:
        value = self.sign()
        while operator := self.take("*", "/"):
            right = self.sign()
            if operator == "/" and right == 0:
                raise ToolError("division_by_zero", f"division by zero in {self.text!r}")
            value = self.bounded(value * right if operator == "*" else value / right)
        return value

    def sign(self) -> Fraction:
        negative = False
        while operator := self.take("+", "-"):
            negative ^= operator == "-"
        value = self.power()
        return -value if negative else value

    def power(self) -> Fraction:
        base = self.atom()
        if not self.take("**"):
            return base
        self.depth += 1
        if self.depth > 50:
            raise ToolError("invalid_expression", "the powers are nested more than 50 deep")
        exponent = self.sign()
        self.depth -= 1
        return self.raised(base, exponent)

    def raised(self, base: Fraction, exponent: Fraction) -> Fraction:
        if base == 0 and exponent < 0:
            raise ToolError("division_by_zero", "zero to a negative power divides by zero")
        if exponent.denominator != 1:
            if base < 0:
                raise ToolError("invalid_expression", "a negative number has no real fractional power")
            try:
                return Fraction(float(base) ** float(exponent))
            except OverflowError:
                raise ToolError("too_large", "the result is too large") from None
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(base) != 1 and base != 0 and (bits - 1) * abs(exponent) > LARGEST_BITS:
            raise ToolError("too_large", f"{base} ** {exponent} is too large")
        if abs(exponent) > LARGEST_BITS:  # of 0, 1 or -1
            exponent = Fraction(exponent.numerator % 2 + 2)
        return self.bounded(base**exponent.numerator)

    def atom(self) -> Fraction:
        if self.take("("):
            value = self.sum()
            if not self.take(")"):
                raise self.error("')'")
            return value
        self.skip_spaces()
        start = self.position
        while self.position < len(self.text) and self.text[self.position] in "0123456789.":
            self.position += 1
        digits = self.text[start : self.position]
        if digits.count(".") > 1 or not digits.strip("."):
            self.position = start
            raise self.error("a number")
        return Fraction(digits)

    def take(self, *operators: str) -> str | None:
        self.skip_spaces()
        rest = self.text[self.position : self.position + 2]
        if rest == "**" and "**" not in operators:
            return None
        for operator in operators:
            if rest.startswith(operator):
                self.position += len(operator)
                return operator
        return None

    def at_end(self) -> bool:
        self.skip_spaces()
        return self.position == len(self.text)

    def skip_spaces(self) -> None:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1

    def bounded(self, value: Fraction) -> Fraction:
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > LARGEST_BITS:
            raise ToolError("too_large", "a number in between becomes too large")
        return value

    def error(self, expected: str = "an operator or the end") -> ToolError:
        found = f"'{self.text[self.position]}'" if self.position < len(self.text) else "the end"
        hint = "use digits, + - * / **, and parentheses; no units, names, commas or other signs"
        message = f"expected {expected} at character {self.position} of {self.text!r}, found {found}"
        return ToolError("invalid_expression", message, hint)
