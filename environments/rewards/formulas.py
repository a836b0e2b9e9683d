"""Is a number part of a calculation, a power, a term or an equation that is not solved? None is evaluated."""

from __future__ import annotations

import re

_AFTER = re.compile(
    r"\s*(?:‰|per (?:thousand|mille)\b|[个天年月点米斤元]半)"
    r"|\s*(?:\^|\\[A-Za-z]|[π√∞]|(?:pi|squared|cubed|factorial)\b)|\)?\s?\((?:\d|[A-Za-z]\s*[-+*/)])"
    r"|\s*[-+*/×÷]\s*(?![mgshdlL]\b|[aAI]\s+[a-z])[A-Za-z](?![A-Za-z])"
    r"|\s+(?:times|divided by|mod|over)\s+\S*\d|\s+(?:plus|minus)\s[^.,;\n]{0,30}?\d"
)
_BEFORE = re.compile(
    r"(?:\\[A-Za-z]+|[√∛∜±*×÷^/]|[-+]\s*\(+|[\d)%}]\s*[-+])\s*\(?\s*$|[\d)]\(\s*$"
    r"|(?<![A-Za-z])(?:[A-Za-z]|abs|max|min|gcd|lcm|floor|ceil)\(\s*$"
    r"|(?<![A-Za-z])(?:sin|cos|tan|log|ln|exp|sqrt)\s*\(?\s*$"
    r"|(?<![A-Za-z])[A-Za-z]\s*[-+]\s*$"
    r"|\b(?:half|third|quarter|double|triple|square|cube|root|multiples?|factors?|percent|%|reciprocal"
    r"|logarithm|negative|opposite|inverse|factorial)\s+of\s*$"
    r"|\b(?:twice|double|triple|thrice|(?:two|three|four|five|ten|\d+)\s+times|divisible by)\s*$",
    re.I,
)

_UNIT = re.compile(
    r"[mgshdlAVWJNKCFL]|(?i:[kmcdn]?m|[km]?g|[mcd]?l|[kmgt]b|ft|in|oz|lb|yd|mi|hr|hp|pt|qt|[ap]m|th|st|nd|rd"
    r"|[mn]s|k[wvj]|[mk]?hz|mw|k?pa|ha|cc|p[cxp]|[rc]s|ct|[bm]n)"
)
_UNIT_WITH_SIGNS = re.compile(r"\s?(?:(?:[mcdk]?m|ft|in|yd|mi)[23](?!\w)|[ap]\.\s?m\b)")
_LETTERS = re.compile(r"(\s?)([A-Za-z]+)(\d?)")
_UNKNOWNS = re.compile(r"[abcijknpqrtuvwxyz]{3,4}")
_NO_MORE_WORDS = re.compile(r"\s*(?:\Z|[.,:;!?)\]=+*/^<>$\n]|-(?![A-Za-z]))")

_SIDES_BEGIN = re.compile(r"[,;:\n]|\b(?:is|are|so|then|and|that|get|have|gives|means|since|if|or)\b", re.I)
_TIMES = re.compile(r"(?<=\d)(?:\s+x\s+(?=[-(]?\d)|x(?=\d))")
_NAME = re.compile(r"\s*\\?(?:[A-Za-z]|[A-Za-z]{3,}(?:\s+[A-Za-z]+)*)\s*")
_OPERAND = r"\s*(?:[\d(\\$]|[A-Za-z](?![A-Za-z]))"
_UNIT_OPERAND = r"[mgshdlLCFA]\s?(?:[*/×÷]|[-+]\s?\d[\d.,]*\s?[A-Za-z])"
_EXPRESSION = re.compile(
    r"(?<![A-Za-z])[A-Za-z]\s*[)}]?\s*\^"  # x^2
    r"|\d[A-Za-z](?![A-Za-z])\s*\Z|\d\s+(?![mgshdlLCFA]\b)[A-Za-z](?![A-Za-z])\s*\Z"  # 2x, but not 1800 m
    rf"|(?<![A-Za-z\d/])(?<!\d )(?<!/ )(?:(?<![a-z] )[A-Z]|[a-z])\s*[-+*/×÷]{_OPERAND}"  # x+1, x-y
    rf"|\d\s?(?!{_UNIT_OPERAND})[A-Za-z](?![A-Za-z])\s*[-+*/×÷]{_OPERAND}"  # 2x+1, but not 3 m + 1 m
    r"|[\d)A-Za-z]\s*[-+*×÷]\s*[A-Za-z](?![A-Za-z-])"  # 1+x
    r"|/\s*(?![mgshdlL])[A-Za-z](?![A-Za-z])"  # 1/x, but not km/h
    r"|\A\s*[a-df-hj-np-tv-z]{2}\s*\Z|\A\s*-\s*[A-Za-z]\s*\Z"  # xy, -x
    r"|\|[^|\d]*[A-Za-z][^|\d]*\||(?:√|\\sqrt)[\s({]*[A-Za-z]|(?<![A-Za-z])[A-Za-z]!|\blim\b"
    r"|(?:\\l(?:floor|ceil)|[⌊⌈])\s*[A-Za-z]"
    r"|(?:log|ln|sin|cos|tan|exp)\b[\s({]*[A-Za-z](?![A-Za-z])"
)


def is_in_formula(before: str, after: str) -> bool:
    """Whether the number between these texts is an operand, or multiplies an unknown: 18^2, f(18), 18a."""
    return bool(_AFTER.match(after) or _BEFORE.search(before) or _unknown_follows(after))


def solves_nothing(before: str) -> bool:
    """Whether the number is what an expression equals, as in x^2 = 18; x = 18 and A = lw = 18 are solved."""
    equation = before.rstrip(" $")
    if not equation.endswith("="):
        return False
    sides = _TIMES.sub("*", _SIDES_BEGIN.split(equation[:-1])[-1]).split("=")
    return bool(_EXPRESSION.search(sides[-1])) and not any(_NAME.fullmatch(side) for side in sides[:-1])


def _unknown_follows(after: str) -> bool:
    """Whether letters follow that are no unit: 18a, 18xy, and "18 x" where no more words follow."""
    letters = _LETTERS.match(after)
    if letters is None or _UNIT_WITH_SIGNS.match(after):
        return False
    gap, run, digit = letters.groups()
    if _UNIT.fullmatch(run):
        return bool(digit)
    if gap:
        return len(run) == 1 and bool(_NO_MORE_WORDS.match(after, letters.end()))
    return bool(len(run) < 3 or digit or _UNKNOWNS.fullmatch(run))
