"""Personal data in text, found by form: addresses, numbers of phones, cards and accounts, hosts.

Found are `email`; `phone` (with a + and a country code, or in North American groups of 3-3-4); `card`
(numbers of the large brands with a right Luhn digit, https://en.wikipedia.org/wiki/Luhn_algorithm); `iban`
(right by its check digits, ISO 13616); `ip` (public addresses of versions 4 and 6: private ones point to
nobody).
Not covered: names, postal addresses, dates of birth, national ids, phone numbers without a country code in
other forms, and what is spelt out ("at", "dot"). A version number of four parts reads as an address.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple, get_args

PiiKind = Literal["email", "phone", "card", "iban", "ip"]
KINDS: tuple[PiiKind, ...] = get_args(PiiKind)


class Found(NamedTuple):
    """A part of a text, and what it is."""

    first: int
    end: int
    kind: str


def pii_in(text: str, kinds: Iterable[PiiKind]) -> list[Found]:
    """Personal data of these kinds, in order, without overlap: of two, the one that begins first stays."""
    if not _SIGN.search(text):
        return []
    found = [one for kind in KINDS if kind in kinds for one in _of_kind(text, kind)]
    apart: list[Found] = []
    for one in sorted(found, key=lambda one: (one.first, -one.end)):
        if not apart or one.first >= apart[-1].end:
            apart.append(one)
    return apart


def _of_kind(text: str, kind: PiiKind) -> Iterator[Found]:
    pattern, is_right = _PATTERNS[kind], _RIGHT[kind]
    at = 0
    while match := pattern.search(text, at):
        first, at = match.start(), match.start() + 1
        ends = [
            match.end(),
            *(gap.start() for gap in reversed(list(_GAP.finditer(text, first, match.end())))),
        ]
        for end in ends:  # what follows a number may look like more of it
            if is_right(text[first:end]):
                yield Found(first, end, kind)
                at = end
                break


_SIGN = re.compile(r"[@\d]")
"""Without one of these there is nothing to find."""
_GAP = re.compile("[ -]")
_START = r"(?:(?<![\w.+-])|(?<=\\[nrtbf]))"
"""Where no word is gone on with, or after an escape in JSON."""
_PATTERNS: dict[str, re.Pattern[str]] = {
    "email": re.compile(
        r"(?:(?<![A-Za-z0-9\\])|(?<=\\[nrtbf])|(?<=\\)(?=[\w.+%-]{2}))"  # "\n@decorator" has none
        r"[A-Za-z0-9][\w.+%-]{0,63}@"
        r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}\b"
    ),
    "phone": re.compile(
        rf"{_START}"
        r"(?:\+[1-9]\d{0,2}(?:[ .-]?(?:\(\d{1,4}\)|\d{1,4})){2,5}(?!\w)"
        r"|(?:1[ .-])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[-. ])[2-9]\d\d[-. ]\d{4}(?![-.]?\d|\w))"
    ),
    "card": re.compile(rf"{_START}[2-6](?:[ -]?\d){{12,18}}(?![.-]?\d|\w)"),
    "iban": re.compile(_START + r"[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)"),
    "ip": re.compile(
        rf"{_START}"
        r"(?:(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)"
        r"|(?<!:)(?:[0-9A-Fa-f]{1,4}:|::)(?:[0-9A-Fa-f]{0,4}:){1,7}[0-9A-Fa-f]{0,4}(?![\w:]))"
    ),
}
_BRANDS = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}"
    r"|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|35\d{14}|6(?:011|5\d\d|4[4-9]\d)\d{12}|62\d{14,17}"
)


def _is_phone(text: str) -> bool:
    return 8 <= sum(map(str.isdigit, text)) <= 15


def _is_card(text: str) -> bool:
    digits = re.sub("[ -]", "", text)
    if not _BRANDS.fullmatch(digits):
        return False
    doubled = [int(d) * (1 + place % 2) for place, d in enumerate(reversed(digits))]
    return sum(value // 10 + value % 10 for value in doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    letters = text.replace(" ", "")
    return (
        15 <= len(letters) <= 34
        and int("".join(str(int(c, 36)) for c in letters[4:] + letters[:4])) % 97 == 1
    )


def _is_public_address(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_global
    except ValueError:  # 300.1.1.1, 12:30:45
        return False


_RIGHT: dict[str, Callable[[str], bool]] = {
    "email": lambda text: text.count("@") == 1,
    "phone": _is_phone,
    "card": _is_card,
    "iban": _is_iban,
    "ip": _is_public_address,
}
