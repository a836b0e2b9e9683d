"""Where secrets stand in a text, known by value or by their looks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Literal

from rl_cli.core.secret_patterns import NAMED, RULES, START, VEIL, Rule
from rl_cli.core.secret_values import SHORTEST, all_forms, is_telling, secrets_of

LONGEST_HELD = 4096
"""Characters of an unfinished secret at most; a private key of 4,096 bits takes 3,300."""
MASK = "[redacted]"
CONTEXT = 160
"""Characters before a place that may decide what stands there."""
_WRAP = r"(?<=[A-Za-z0-9+/_-]{60})(?:\r?\n|(?:\\r)?\\n|(?:\r|\\|\\r\\?)\Z)"
"""Where base64 is wrapped: after a long line of it."""

Span = tuple[int, int]


LEAD = 2
"""Letters of a secret that a stream may show before it is known as one: else every word that ends as a secret
begins, such as "models" or "it's", would have to wait for the next one."""
SHOWN = 3
"""Characters of base64 that stay: they stand for two of the secret, and much text ends like its first one."""


_START = re.compile(START)


class Prefixes:
    """Finds, at the end of a text, what may be the beginning of one of some words.

    Args:
        words: The words.
        shown: So many characters of a word need not be held back.
    """

    def __init__(self, words: Iterable[str], shown: Literal[0, 3] = 0) -> None:
        self._shown = shown
        self._short: dict[str, int] = {}
        for word in words if not shown else ():
            for n in range(1, min(4, len(word))):
                self._short[word[:n]] = min(_lead_of(word), self._short.get(word[:n], LEAD))
        self._long = [(word[:4], word) for word in words if len(word) > 4]

    def start_of(
        self,
        text: str,
        first: int = 0,
        only_after: re.Pattern[str] | None = None,
        at_once: bool = False,
    ) -> int:
        """The earliest index from which the rest of `text` begins a word; else its length.

        Args:
            text: The text.
            first: The least index.
            only_after: What has to match, without width, where the word begins.
            at_once: Two letters of a word need not be held back.
        """
        size = best = len(text)
        for n in (1, 2, 3):
            at, lead = size - n, self._short.get(text[-n:])
            if lead is not None and at >= max(0, first - LEAD) and _fits(only_after, text, at):
                best = min(best, max(first, min(size, at + lead * at_once)))
        for head, word in self._long:
            at = text.find(head, max(first - max(self._shown, LEAD), size - len(word) + 1, 0))
            while 0 <= at < best:
                if word.startswith(text[at:]) and _fits(only_after, text, at):
                    best = min(best, max(first, at + (self._shown or _lead_of(word) * at_once)))
                at = text.find(head, at + 1)
        return best


def _lead_of(word: str) -> int:
    return LEAD if word[:LEAD].isascii() and word[:LEAD].isalnum() else 0


def _fits(pattern: re.Pattern[str] | None, text: str, at: int) -> bool:
    return pattern is None or pattern.match(text, at) is not None


class Known:
    """The secrets that are known by value, in all their forms."""

    def __init__(self, values: Iterable[str]) -> None:
        self.plain, self.encoded = all_forms(values)
        self.plain_starts, self.encoded_starts = Prefixes(self.plain), Prefixes(self.encoded, shown=3)


_known: Known | None = None
_told: set[str] = set()
_marker_starts = Prefixes([marker for rule in RULES if not rule.fold for marker in rule.markers])


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


def keep_environment() -> None:
    """The secrets that the environment holds now stay known when it loses them."""
    _told.update(secrets_of(os.environ))


def known() -> Known:
    """The secrets of the environment as it was at the first use, and those told since."""
    global _known
    if _known is None:
        _known = Known(secrets_of(os.environ) | _told)
    return _known


def spans_of(text: str) -> list[Span]:
    """What is to be masked, in order, without overlap."""
    if len(text) < SHORTEST:
        return []
    values = known()
    found = [span for needle in values.plain if needle in text for span in _everywhere(text, needle)]
    if values.encoded:
        found += _encoded_spans(text, values.encoded)
    found += _looks(text, RULES)
    if not found:
        return found
    spans = _joined(text, sorted(found))
    while more := _looks(_veiled(text, spans), NAMED):  # a secret may have hidden where a value ends
        spans = _joined(text, sorted([*spans, *more]))
    return spans


def settled(text: str, first: int, at_once: bool = False) -> int:
    """Up to where, from `first` on, `text` stays as it is whatever follows (`at_once`: bar two letters)."""
    values = known()
    end = values.plain_starts.start_of(text, first, None, at_once)
    if values.encoded:
        end = min(end, _encoded_start(text, values.encoded_starts, first))
    end = min(end, _marker_starts.start_of(text, first, _START, at_once))
    folded = _fold(text)
    for rule in RULES:
        searched = folded if rule.fold else text
        for marker_text in rule.markers:
            at = searched.find(marker_text)
            while 0 <= at < end:
                if match := rule.unfinished.match(text, at):
                    end = min(end, max(first, match.start("value")))
                at = searched.find(marker_text, at + 1)
    return end - 1 if end > first and _is_escaped(text, end) else end


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


def _encoded_spans(text: str, needles: list[str]) -> list[Span]:
    line = text
    if "\n" in line:
        line = line.replace("\r", "").replace("\n", "")
    if "\\n" in line:
        line = line.replace("\\r", "").replace("\\n", "")
    spans: list[Span] = []
    for needle in needles:
        if needle in line:
            letters = [re.escape(letter) for letter in needle]
            letters[SHOWN] = f"(?P<masked>{letters[SHOWN]}"
            wrapped = re.compile(f"(?:{_WRAP})?".join(letters) + ")")
            spans += [match.span("masked") for match in wrapped.finditer(text)]
    return spans


def _encoded_start(text: str, starts: Prefixes, first: int) -> int:
    """As `Prefixes.start_of`, for base64 that may be wrapped."""
    wraps = list(re.finditer(_WRAP, text)) if any(c in text for c in "\n\r\\") else []
    if not wraps:
        return starts.start_of(text, first)
    before = sum(len(wrap[0]) for wrap in wraps if wrap.start() < first)
    at = starts.start_of(re.sub(_WRAP, "", text), first - before)
    for wrap in wraps:
        if wrap.start() <= at:
            at += len(wrap[0])
    return at


def _looks(text: str, rules: Iterable[Rule]) -> list[Span]:
    folded = _fold(text)
    spans = []
    for rule in rules:
        searched = folded if rule.fold else text
        for marker in rule.markers:
            if marker in searched:
                spans += _rule_spans(text, searched, marker, rule)
    return spans


def _veiled(text: str, spans: list[Span]) -> str:
    """`text` with each span as so many `VEIL`s, which say what a mask there would say."""
    parts, at = [], 0
    for first, last in spans:
        parts += [text[at:first], VEIL * (last - first)]
        at = last
    return "".join([*parts, text[at:]])


def _rule_spans(text: str, searched: str, marker: str, rule: Rule) -> list[Span]:
    spans = []
    at = searched.find(marker)
    while at >= 0:
        after = at + len(marker)
        if match := rule.found.match(text, at):
            if rule.decide(match):
                groups = match.groupdict()
                name = next(name for name in ("masked", "quoted", "bare") if groups.get(name) is not None)
                spans.append(match.span(name))
                after = match.end()
            elif not rule.fold:  # nothing in it could decide otherwise
                after = match.end()
        at = searched.find(marker, after)
    return spans


def _joined(text: str, spans: list[Span]) -> list[Span]:
    """Overlapping spans as one; none begins or ends within an escape sequence."""
    joined: list[Span] = []
    for first, last in spans:
        if first and text[first - 1] == "\\" and _is_escaped(text, first):
            first -= 1
        if text[last - 1] == "\\" and _is_escaped(text, last):
            last = min(last + (len(MASK) if text.startswith(MASK, last) else 1), len(text))
        if joined and first < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def _is_escaped(text: str, at: int) -> bool:
    """Whether an odd number of backslashes stands before `at`."""
    before = text[max(0, at - 64) : at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1
