"""Which values of the environment are secrets, in each form that text may hold them in.

A variable is secret by its name (`ACME_TOKEN`, `PGPASSWORD`), unless it holds a path, a switch, or a number
of fewer than 12 digits.
Not covered, because masking them would make ordinary text unreadable: values shorter than 8 characters, and
plain words (`API_KEY=training`, `SORT_KEY=total_steps`). Those are masked only behind their variable's name.
"""

from __future__ import annotations

import json
import os
import re
from binascii import b2a_base64
from collections.abc import Iterable, Mapping

SHORTEST = 8
"""Characters of the shortest value that is masked wherever it stands."""
LINE = 16
"""Lines of a value of several lines are looked for one by one from this length on."""
_SECRET_WORD = (
    r"KEYS?|PASS|AUTH|AUTHORIZATION|PRIVATE|PAT|JWT|COOKIE"
    r"|\w*(?:APIKEY|ACCESSKEY|TOKENS?|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)"
)
_LAST_WORD_OF_OTHERS = (
    r"NAME|TYPE|UR[LI]|ENDPOINT|HOST|SERVER|PORT|USER|FILE|PATH|DIR|SOCK|SOCKET|SIZE|LIMIT|COUNT|MODE|VERSION"
    r"|METHOD|LAYOUT|ALGORITHM|TTL|EXPIRES|ENV"
)
_PATH = r"(?:~|\.{1,2})?/|[A-Za-z]:[\\/]"
_NAME = r"(?:[A-Z]?[a-z]{1,14}|[A-Z]{1,10})\d{0,5}|\d{1,4}"
_SEGMENT = rf"[A-Za-z]:|~|\.{{1,2}}|\.?(?:{_NAME})(?:[-_.](?:{_NAME}))*"
_LONG_NUMBER = r"[0-9]{12,}"
_NUMBER = r"[0-9.,:+/ _-]*(?:[TZeE][0-9.,:+ _-]*)*"
_SWITCH = r"(?i:true|false|yes|no|on|off|none|null|auto|enabled|disabled)"
_WORD = (
    r"[a-z]{1,10}|[A-Z]{1,10}|[A-Z][a-z]{1,9}|(?=.{1,16}\Z)[a-z]+(?:_[a-z]+)+"
    r"|(?i:environments?|temperature|completions?|checkpoints|application|description|organi[sz]ation"
    r"|placeholder|conversation|instructions|configuration|development|production)"
)
_ADDRESS = r"://[^\s/:@]*:([^\s/]+)@"


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name is taken for a secret."""
    words = [word for word in re.split(r"[^A-Z0-9]+", name.upper()) if word]
    if not words or "PUBLIC" in words or re.fullmatch(_LAST_WORD_OF_OTHERS, words[-1]):
        return False
    if words[-1] == "PWD" and len(words) > 1:
        return True
    return any(re.fullmatch(_SECRET_WORD, word) for word in words)


def is_telling(value: str) -> bool:
    """Whether a value can be masked wherever it stands without harm to other text."""
    plain = len(value) < SHORTEST or _is_masked(value) or re.fullmatch(_WORD, value)
    return not plain and not _is_setting(value)


def secrets_of(environment: Mapping[str, str]) -> set[str]:
    """What to mask of an environment: values, passwords in addresses, NAME=value where values are plain."""
    found = set()
    for name, value in environment.items():
        value = value.strip()
        if is_secret_name(name):
            if is_telling(value):
                found.add(value)
            elif len(value) >= 4 and not _is_setting(value) and not _is_masked(value):
                found.add(f"{name}={value}")
        elif "://" in value:
            found.update(filter(is_telling, re.findall(_ADDRESS, value)))
    return found


def forms(value: str) -> set[str]:
    """`value` as it stands in text, JSON (once and twice), Python, addresses, HTML and shell commands."""
    found = {value}
    if not re.fullmatch(r"[A-Za-z0-9_.~-]*", value):
        from html import escape
        from urllib.parse import quote, quote_plus

        for ascii_only in (True, False):
            once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
            found |= {once, json.dumps(once, ensure_ascii=ascii_only)[1:-1]}
        data = value.encode("utf-8", "surrogateescape")
        quoted = {quote(data, safe=""), quote(data), quote_plus(data)}
        found |= quoted | {re.sub("%..", lambda m: m[0].lower(), text) for text in quoted}
        found |= {repr(value)[1:-1], escape(value), escape(value, quote=False)}
        found |= {value.replace("'", "'\"'\"'"), re.sub(r"([^\w@%+=:,./-])", r"\\\1", value)}
    lines = [line.strip() for line in value.splitlines()]
    if len(lines) > 1:
        found |= {line for line in lines if len(line) >= LINE and "-----" not in line}
    return {text for text in found if len(text) >= SHORTEST}


def base64_forms(value: str) -> set[str]:
    """What stands in the base64 of any text that holds `value`, at each of the three alignments."""
    found = set()
    data = value.encode("utf-8", "surrogateescape")
    for before in range(3):
        whole = b2a_base64(b"\0" * before + data, newline=False).decode()
        inner = whole[(0, 2, 3)[before] : (before + len(data)) * 8 // 6]
        found |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {text for text in found if len(text) >= SHORTEST}  # at each alignment, 8 bytes make 8 or more


def all_forms(values: Iterable[str]) -> tuple[list[str], list[str]]:
    """(plain needles, base64 needles) of all values."""
    plain: set[str] = set()
    encoded: set[str] = set()
    for value in values:
        plain |= forms(value)
        encoded |= base64_forms(value)
    return sorted(plain), sorted(encoded)


def _is_setting(value: str) -> bool:
    """A path, a number, a time, a switch."""
    if re.match(_PATH, value):
        return _is_path(value)
    if re.fullmatch(_LONG_NUMBER, value):
        return False
    return bool(re.fullmatch(_NUMBER, value) or re.fullmatch(_SWITCH, value))


def _is_path(value: str) -> bool:
    """It exists, or is made of several names; passwords and base64 may begin like one too."""
    if set(value) & set("+= \n"):
        return False
    segments = [segment for segment in re.split(r"[\\/]+", value) if segment]
    named = len(segments) > 1 and all(re.fullmatch(_SEGMENT, segment) for segment in segments)
    return named or os.path.exists(os.path.expanduser(value))


def _is_masked(value: str) -> bool:
    """It holds a mask or is a part of one: masking it would change what was masked before."""
    return value in "[redacted]" or "[redacted" in value or "redacted]" in value
