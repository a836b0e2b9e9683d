"""Which values of the environment are secrets, in each form that text may hold them in.

A variable is secret by its name (`ACME_TOKEN`, `PGPASSWORD`), unless its value is a path, a number, a switch or
a plain word. Not covered: values shorter than 8 characters, and words of up to 10 letters of one case
(`API_KEY=disabled`), because masking them would make ordinary text unreadable.
"""

from __future__ import annotations

import json
import re
from binascii import b2a_base64
from collections.abc import Iterable, Mapping

SHORTEST = 8
"""Characters of the shortest value that is masked wherever it stands."""
LINE = 16
"""Lines of a value of several lines are looked for one by one from this length on."""
_WORDS = frozenset(
    "KEY KEYS APIKEY TOKEN TOKENS SECRET SECRETS PASSWORD PASSWD PASS PASSPHRASE CREDENTIAL CREDENTIALS AUTH"
    " AUTHORIZATION PRIVATE PAT JWT COOKIE".split()
)
_ENDINGS = ("APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS", "ACCESSKEY")
_NO_SECRET = frozenset(
    "NAME TYPE URL URI ENDPOINT HOST PORT USER FILE PATH DIR SOCK SOCKET SIZE LIMIT COUNT MODE VERSION METHOD"
    " LAYOUT ALGORITHM TTL EXPIRES PARALLELISM ENV".split()
)
_COMMON = frozenset(
    "environment environments temperature completion completions checkpoints application description"
    " organization organisation placeholder conversation instructions configuration".split()
)
_PLAIN = re.compile(
    r"[a-z]{1,10}|[A-Z]{1,10}|[A-Z][a-z]{1,9}|[\W\d_]*|[0-9.,:+/ _-]*(?:[TZeE][0-9.,:+ _-]*)*"
)
_PATH = re.compile(r"(?:~|\.{1,2})?/|[A-Za-z]:[\\/]")
_ADDRESS = re.compile(r"://[^\s/:@]*:([^\s/]+)@")


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name is taken for a secret."""
    words = [word for word in re.split(r"[^A-Z0-9]+", name.upper()) if word]
    if not words or words[-1] in _NO_SECRET:
        return False
    if words[-1] == "PWD" and len(words) > 1:
        return True
    return any(word in _WORDS or word.endswith(_ENDINGS) for word in words)


def is_telling(value: str) -> bool:
    """Whether a value can be masked wherever it stands without harm to other text."""
    if len(value) < SHORTEST or "redacted" in value or value.lower() in _COMMON:
        return False
    return not _PLAIN.fullmatch(value) and not (_PATH.match(value) and not set(value) & set("+= \n"))


def secrets_of(environment: Mapping[str, str]) -> set[str]:
    """The secret values of an environment, and the passwords in its addresses."""
    found = set()
    for name, value in environment.items():
        if is_secret_name(name):
            found.add(value.strip())
        elif "://" in value:
            found.update(_ADDRESS.findall(value))
    return {value for value in found if is_telling(value)}


def forms(value: str) -> set[str]:
    """`value` as it stands in text, JSON (once and twice), Python, addresses, HTML and shell commands."""
    found = {value}
    if not re.fullmatch(r"[A-Za-z0-9_.~-]*", value):
        from html import escape
        from urllib.parse import quote, quote_plus

        for ascii_only in (True, False):
            once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
            found |= {once, json.dumps(once, ensure_ascii=ascii_only)[1:-1]}
        quoted = {quote(value, safe=""), quote(value), quote_plus(value)}
        found |= quoted | {re.sub("%..", lambda m: m[0].lower(), text) for text in quoted}
        found |= {repr(value)[1:-1], escape(value), escape(value, quote=False)}
        found |= {value.replace("'", "'\"'\"'"), re.sub(r"([^\w@%+=:,./-])", r"\\\1", value)}
    lines = value.splitlines()
    if len(lines) > 1:
        found |= {line.strip() for line in lines if len(line.strip()) >= LINE and "-----" not in line}
    return {text for text in found if len(text) >= SHORTEST}


def base64_forms(value: str) -> set[str]:
    """What is in the base64 of any text that holds `value`, at each of the three alignments."""
    found = set()
    data = value.encode("utf-8", "surrogateescape")
    for before in range(3):
        whole = b2a_base64(b"\0" * before + data, newline=False).decode()
        first = (0, 2, 3)[before]
        last = (before + len(data)) * 8 // 6
        inner = whole[first:last]
        found |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {text for text in found if len(text) >= SHORTEST}


def all_forms(values: Iterable[str]) -> tuple[list[str], list[str]]:
    """(plain needles, base64 needles) of all values."""
    plain: set[str] = set()
    encoded: set[str] = set()
    for value in values:
        plain |= forms(value)
        encoded |= base64_forms(value)
    return sorted(plain), sorted(encoded)
