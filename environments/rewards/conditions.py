"""Is a value stated only under a condition, with another value or none where it does not hold?

"18 if he works" alone restates the question and is no such condition.
"""

from __future__ import annotations

import re

_IF = r"(?:\b(?:if|when|whenever|where|provided|assuming|as long as|in case)\b|如果|若)"
_ELSE = r"(?:\b(?:otherwise|or else|if not)\b|\belse[\s,:]|否则|不然|反之)"
_OF_UNKNOWN = (
    r"\b(?:if|when|whenever|where|for|provided(?: that)?|assuming|as long as)\s+(?:all |any |every )?[\s$(]*"
    r"[A-Za-z]\s*(?:[<>≤≥≠]|\\[lgn]eq?|!=|is\s+(?:even|odd|positive|negative|non-?\w+|zero|prime|less|greater)\b)"
)
_AFTER = re.compile(
    r"\s*(?:[A-Za-z$%]{1,15}\s)?(?:otherwise|in (?:all|the) other cases?)\b(?!\s\w+ed\b|\s(?:said|known))"
    r"|[\s,(]{1,3}[a-z]\s*[<>≤≥≠]=?\s*-?\d|[^.\n\d]{0,20}\b(?:first|one) case\b[^.\n]{0,40}\d"
    rf"|[^.;!?\n\d]{{0,60}}?\bunless\b|[^.;!?\n\d]{{0,40}}?{_OF_UNKNOWN}"
    rf"|[^.;!?\n\d]{{0,60}}?{_IF}[^.!?\n=]{{0,60}}?\d[^.!?\n\d]{{0,30}}?{_IF}"
    rf"|[^.!?\n]{{0,80}}?[,;]?\s*{_ELSE}[^.!?\n]{{0,50}}?\d",
    re.I,
)
_BEFORE = re.compile(
    rf"\\begin\s*\{{?\s*[dr]?cases|(?:\A|[.,;:(]|\b(?:and|or|but)\b|\d)\s*{_ELSE}[^.!?\n\d]{{0,40}}\Z", re.I
)
_ALTERNATIVE = re.compile(rf"{_IF}[^\n]{{0,200}}?{_ELSE}[^\n.]{{0,60}}?\d", re.I)


def is_conditional(before: str, after: str) -> bool:
    """Whether the texts around a number make it hold in one case only."""
    return bool(_AFTER.match(after) or _BEFORE.search(before))


def has_alternative(text: str, start: int, end: int) -> bool:
    """Whether a part of `text` goes on from a condition to what holds otherwise."""
    return bool(_ALTERNATIVE.search(text, max(0, start), end))
