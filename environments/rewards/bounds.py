"""Is a number a bound of the value instead of the value: "at least 18", "18 or more", 至少18, 18以上?"""

from __future__ import annotations

import re

from environments.rewards.plain_text import CURRENCY_SIGNS

_COMPARATIVE = (
    "(?:more|less|greater|fewer|larger|smaller|bigger|higher|lower|longer|shorter|older|younger|heavier"
    "|lighter|better|earlier|later)"
)
_ADDS = "add adds added adding sum sums come comes total totals count counts round rounds rounded all it"
_UP_TO = "".join(f"(?<!{verb} )" for verb in _ADDS.split()) + "up to"
_FILLER = (
    r"(?:\s*\b(?:about|around|roughly|approximately|exactly|only|just|a total of|the"
    r"|(?:or )?equal(?: to)?)\b)*"
)
_BEFORE = re.compile(
    rf"(?:\b(?:between|{_COMPARATIVE} than|at (?:the )?(?:very )?(?:least|most)|at (?:an? )?m(?:in|ax)imum"
    rf"|a m(?:in|ax)imum of|(?<!left )over|under|above|below|beneath|beyond|exceed(?:s|ed|ing)?"
    rf"|surpass(?:es|ed|ing)?|almost|nearly|close to|approach(?:es|ing)|hardly|scarcely|short of|shy of"
    rf"|in excess of|upwards of|capped at|limited to|(?:upper|lower) bound(?: of| is)?"
    rf"|as (?:few|many|much|little|high|low) as|{_UP_TO}){_FILLER}[\s(]*"
    r"|(?:介于|至少|至多|最多|最少|超过|不到|不足|不止|[多少大小高低]于|将近|接近)(?:或?等于|是|为|有)?\s*"
    r"|(?<!-)[<>≤≥]=?\s*)$",
    re.I,
)
_UNIT = rf"(?:\s*(?!or\b|and\b|at\b)[A-Za-z%°{CURRENCY_SIGNS}]{{1,20}}){{0,2}}?"
_CLAUSE_END = r"(?=\s*(?:[.,;!)$]|\Z))"
_AFTER = re.compile(
    rf"{_UNIT}[\s,(]*(?:or|and|&)\s+(?:{_COMPARATIVE}|above|below|over|under|up|upwards?|onwards?|beyond)\b"
    rf"|{_UNIT}[\s,(]*\bat (?:the )?(?:very )?(?:most|least|(?:a )?minimum|(?:a )?maximum)\b{_CLAUSE_END}"
    rf"|{_UNIT}[\s,(]*\b(?:maximum|minimum|max|tops){_CLAUSE_END}"
    rf"|\s*[<>≤≥]=?\s*[A-Za-z](?![A-Za-z])|\s*\+(?!\s*[\w(\\$])|-?\s?plus\b{_CLAUSE_END}"
    r"|\s*[\u4e00-\u9fff]{0,3}?(?:以上|以下|以内|有余|或更[多少高低大小])|\s*[多余](?!少)",
    re.I,
)


def is_bound(before: str, after: str) -> bool:
    """Whether the texts around a number make it a bound, or a value only approached. "About" does not."""
    return bool(_BEFORE.search(before) or _AFTER.match(after))
