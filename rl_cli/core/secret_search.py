"""Where secrets stand in a text, known by value or by their looks."""

from __future__ import annotations

import os
import re

from rl_cli.core.secret_patterns import Rule, rules
from rl_cli.core.secret_values import all_forms, is_telling, secrets_of

LONGEST_HELD = 32_768
"""Characters of an unfinished secret at most; a private key of 16,384 bits takes 13,000."""
CONTEXT = 128
"""Characters before a place that may decide what stands there."""
_BREAK = r"(?:(?<=[A-Za-z0-9+/_-]{60})(?:\r?\n|(?:\\r)?\\n))?"
"""Where base64 is wrapped: after a long line of it."""

Span = tuple[int, int]


class _Known:
    """The needles of all secrets that are known by value."""

    def __init__(self, values: set[str]) -> None:
        self.values = values
        self.plain, self.encoded = all_forms(values)
        self.longest = max(map(len, self.plain + self.encoded), default=0) * 2


_known: _Known | None = None
_told: set[str] = set()


def forget() -> None:
    """The environment is read anew at the next use, and what `remember` was told is forgotten."""
    global _known
    _known = None
    _told.clear()


def remember(value: str) -> None:
    """From now on `value` is a secret too, unless it is too short or too plain to be told from other text."""
    global _known
    if is_telling(value) and value not in _told:
        _told.add(value)
        _known = None


def _get_known() -> _Known:
    global _known
    if _known is None:
        _known = _Known(secrets_of(os.environ) | _told)
    return _known


def spans_of(text: str) -> list[Span]:
    """What is to be masked, in order, without overlap."""
    known = _get_known()
    found: list[Span] = []
    for needle in known.plain:
        if needle in text:
            found += _everywhere(text, needle)
    if known.encoded:
        found += _encoded_spans(text, known)
    folded: str | None = None
    for rule in rules():
        if rule.fold and folded is None:
            folded = _fold(text)
        for marker in rule.markers:
            if marker in (searched := folded if rule.fold and folded is not None else text):
                found += _rule_spans(text, searched, marker, rule)
    return _joined(text, sorted(found)) if found else found


def _fold(text: str) -> str:
    """Lower case, character for character."""
    return text.replace("\u0130", "I").lower()


def _everywhere(text: str, needle: str) -> list[Span]:
    spans = []
    at = text.find(needle)
    while at >= 0:
        spans.append((at, at + len(needle)))
        at = text.find(needle, at + len(needle))
    return spans


def _encoded_spans(text: str, known: _Known) -> list[Span]:
    line = text
    if "\n" in line:
        line = line.replace("\r", "").replace("\n", "")
    if "\\n" in line:
        line = line.replace("\\r", "").replace("\\n", "")
    spans: list[Span] = []
    for needle in known.encoded:
        if needle in line:
            wrapped = re.compile(_BREAK.join(map(re.escape, needle)))
            spans += [match.span() for match in wrapped.finditer(text)]
    return spans


def _rule_spans(text: str, searched: str, marker: str, rule: Rule) -> list[Span]:
    spans = []
    at = searched.find(marker)
    while at >= 0:
        after = at + len(marker)
        match = rule.found.match(text, at)
        if match and rule.decide(match):
            span = _masked_of(match)
            spans.append(span)
            after = max(after, span[1])
        at = searched.find(marker, after)
    return spans


def _masked_of(match: re.Match[str]) -> Span:
    groups = match.re.groupindex
    for name in ("masked", "quoted", "bare"):
        if name in groups and match[name] is not None:
            return match.span(name)
    raise AssertionError(match.re.pattern)


def _joined(text: str, spans: list[Span]) -> list[Span]:
    """Overlapping spans as one; none ends within an escape sequence."""
    joined: list[Span] = []
    for first, last in spans:
        first = _before_escape(text, first)
        if _odd_backslashes(text, last):
            last = min(last + 1, len(text))
        if joined and first < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def _odd_backslashes(text: str, end: int) -> bool:
    count = 0
    while count < end and text[end - count - 1] == "\\":
        count += 1
    return count % 2 == 1


def _before_escape(text: str, at: int) -> int:
    return at - 1 if _odd_backslashes(text, at) else at


def settled(text: str, start: int) -> int:
    """Up to where `text` stays as it is whatever follows."""
    known = _get_known()
    ends = [_partial(text, start, known.plain), len(text)]
    ends.append(_partial(text, start, known.encoded))
    tail_from = max(0, len(text) - LONGEST_HELD - CONTEXT)
    folded = _fold(text)
    for rule in rules():
        searched = folded if rule.fold else text
        for marker in rule.markers:
            at = searched.find(marker, tail_from)
            while at >= 0:
                if match := rule.unfinished.match(text, at):
                    ends.append(match.start("value"))
                    break
                at = searched.find(marker, at + 1)
            if not rule.fold:
                ends.append(_partial(text, start, [marker]))
    return min(ends)


def _partial(text: str, start: int, needles: list[str]) -> int:
    """Where the longest ending of `text` begins that is the beginning of a needle."""
    best = len(text)
    for needle in needles:
        first = needle[0]
        at = text.find(first, max(start, len(text) - len(needle) + 1))
        while 0 <= at < best:
            if needle.startswith(text[at:]):
                best = at
                break
            at = text.find(first, at + 1)
    return best
