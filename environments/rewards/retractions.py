"""Words that take an answer back, or confirm it after a second look."""

from __future__ import annotations

import re

from environments.rewards.plain_text import CURRENCY

_ANOTHER = rf"(?=-?{CURRENCY}?\d[\d.,]{{0,30}}{CURRENCY}?(?:\s[a-z]{{1,20}})?[.!]?\s{{0,3}}(?:\n|\Z))"
"""A number that ends the line, with its unit."""
TAKEN_BACK = re.compile(
    r"(?:^|[.!?,;:…。(\n—-])[\s*_\"]{0,4}(?:(?:no|oh|ah|but|hm+)\b[\s,.!…-]{0,4}){0,2}"
    r"(?:wait\b(?=\s*[,.!:;\n…—-]|\s+(?:no|that|this|it|I)\b)|correction\b|oops\b|(?:scratch|strike) that\b"
    r"|hold on\b|let me correct\b|just kidding\b|jk\b|never ?mind\b|(?:等等|不对)"
    r"|(?:edit(?:ed)?|updated?|revised|corrected|final)(?:\s(?:answer|total|result|value))?\s?:(?=[^\n\d]{0,40}\d)"
    r"|on second thoughts?\b|my (?:mistake|bad|error)\b"
    r"|(?:actually|sorry|no|nope|I mean|make (?:that|it)|or rather|rather|er|um|uh)\b"
    rf"[\s,:.…-]{{1,4}}{_ANOTHER})"
    rf"|\bbut\s(?:(?:it|that|this|the\s\w{{1,12}}\s\w{{1,12}})(?:'s|\s(?:is|was|should be|must be))"
    rf"|is)\s(?:(?:now|actually|really|in fact)\s)?{_ANOTHER}"
    r"|\b(?:that|this|it|which|answer|result)(?:'s|\s(?:is|was))\s"
    r"(?:wrong|incorrect|a mistake|not (?:right|correct))\b"
    r"|\bno,?\swait\s?[,.!:;\n…—-]"
    r"|\d[^.!\n]{0,12}?\?\s*(?:no|nope|not quite|not really|不)\b|[(\[]\s*(?:wrong|incorrect|not right)\b"
    r"|\byou(?:'re|\sare|\swould be) (?:wrong|mistaken)\b|\bI\s(?:was wrong|(?:need|have) to correct"
    r"|made an?\s(?:\w{1,20}\s)?(?:mistake|error)|mis(?:calculated|counted|read|took))\b",
    re.I,
)
CONFIRMED = re.compile(
    r"\byes\b|(?:\b(?:is|are|was)|'s)\s(?:(?:indeed|still)\s)?(?:correct|right|fine)\b"
    r"|\bchecks out\b|\bstands\b",
    re.I,
)
