"""What secrets look like that nobody has told us of: vendors' prefixes, headers, key files, assignments.

Each rule is tried only where its marker stands, so that its cost is that of finding the marker, and no
expression goes back over much of what it has read. A rule says what is masked, and where text that is still
coming is unfinished.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

# Letters before a marker make it part of a word, unless they belong to an escape sequence. A mask before it
# stands for such letters.
START = r"(?:(?<![A-Za-z0-9])(?<!\[redacted\])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=[0-9;\[]m))"
_QUOTE = r"""(?:\\{0,3}["'])"""
_GIVEN = rf"(?:(?P<json>{_QUOTE})\s{{0,4}}(?:=>|[:=])\s{{0,4}}|\s{{0,4}}(?::=|=>|[:=])\s{{0,4}})"
VEIL = "\0"
"""Stands, character by character, for what is masked already."""
_QUOTED = rf"""[^\s"'\\\[\]{VEIL}]"""
_BARE = r"[\w.+/~!@#$%^*?-]{1,200}+"
_STRONG = r"(?:(?:api|access|private|secret)[_-]?key|passw(?:or)?d|passphrase|pwd|secret)"
_WEAK = r"(?:token|credentials?|auth)"
_SCHEME = r"(?:basic|bearer|token|digest|negotiate|apikey)"
# A placeholder, a path, an address; a variable, an attribute; a word that says what would stand there.
_REFERENCE = (
    r"[$<{%*]|~?/|\.{1,2}/|[A-Za-z]:[\\/]|[a-z]+://"
    r"|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z"
    r"|(?i:string|none|null|true|false|required|optional|password|secret|redacted|token|unknown|missing"
    r"|invalid|incorrect|default|example|changeme|wrong|expired)\Z"
)
_DIGIT, _LETTER, _SPACE = r"\d", r"[A-Za-z]", r"\s"
_SPECIAL, _DRAWN = r"[\d!@#$%^*+~?]", r"[\w.+/=~:!@#$%^*?-]+"

_WORDY = r"A-Za-z0-9_-"
VENDORS: dict[str, tuple[str, int]] = {
    "sk-": (r"A-Za-z0-9_*-", 16),
    **dict.fromkeys(("sk-ant-", "sk-or-", "sk-proj-", "sk-test-", "sk-live-"), (r"A-Za-z0-9_*-", 6)),
    **dict.fromkeys(("sk_live_", "sk_test_", "rk_live_", "rk_test_"), (r"A-Za-z0-9", 10)),
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "hf_", "gsk_", "npm_"), (r"A-Za-z0-9", 20)),
    **dict.fromkeys(("github_pat_", "wandb_v1_", "pypi-", "tgp_v1_", "ya29."), (_WORDY, 20)),
    **dict.fromkeys(("xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-"), (r"A-Za-z0-9-", 10)),
    **dict.fromkeys(("glpat-", "nvapi-", "pplx-", "xai-", "r8_", "dop_v1_"), (_WORDY, 16)),
    **dict.fromkeys(("AKIA", "ASIA"), (r"A-Z0-9", 16)),
    "AIza": (_WORDY, 30),
    "org-": (r"A-Za-z0-9", 8),
    "proj_": (r"A-Za-z0-9", 8),
}
"""Prefix -> (characters that follow, how many at least)."""


@dataclass(frozen=True)
class Rule:
    """A kind of secret.

    Attributes:
        markers: One of them stands where `found` begins to match.
        found_text: What follows from there; masked is its group `masked`, or `quoted`, or `bare`.
        unfinished_text: Matches from the marker to the end of a text whose next characters may decide; its
            group `value` has to wait for them.
        fold: Markers count in any case.
        decide: A last look at the match.
    """

    markers: tuple[str, ...]
    found_text: str
    unfinished_text: str
    fold: bool = False
    decide: Callable[[re.Match[str]], bool] = lambda match: True

    @cached_property
    def found(self) -> re.Pattern[str]:
        return re.compile(self.found_text)

    @cached_property
    def unfinished(self) -> re.Pattern[str]:
        return re.compile(self.unfinished_text)


def is_random(text: str, shortest: int = 16) -> bool:
    """Whether `text` looks drawn, not written: long, with letters and digits."""
    if len(text) < shortest or not re.search(_DIGIT, text) or not re.search(_LETTER, text):
        return False
    return re.fullmatch(_DRAWN, text) is not None and not re.match(_REFERENCE, text)


def is_literal(text: str, quoted: bool) -> bool:
    """Whether what is assigned to a password or an API key is the thing itself, not a name of it."""
    if len(text) < 6 or re.match(_REFERENCE, text) or re.search(_SPACE, text):
        return False
    return quoted or re.search(_SPECIAL, text) is not None


@lru_cache(4096)
def kind_of_name(name: str) -> Literal["strong", "weak", "header"] | None:
    """What a field of this name holds: a password or key, perhaps a token, a header with credentials."""
    match = re.search(rf"(?:(?P<strong>{_STRONG})|(?P<weak>{_WEAK})|authorization)\Z", name[-40:].lower())
    if match is None:
        return None
    return "strong" if match["strong"] else "weak" if match["weak"] else "header"


def is_secret_field(name: str, value: str) -> bool:
    """Whether `value` of a field called `name` is a secret by that name."""
    kind = kind_of_name(name)
    if kind == "header" and re.match(rf"(?i:{_SCHEME})\s+[^\s\[]", value):
        return True
    if kind == "strong":
        return is_literal(value, quoted=True)
    return kind is not None and is_random(value, 16 if kind == "weak" else 8)


def _mixed(match: re.Match[str]) -> bool:
    return re.search("[A-Z0-9]", match["rest"]) is not None


def _account(match: re.Match[str]) -> bool:
    return bool(re.search(_DIGIT, match["rest"]) and re.search("[A-Z]", match["rest"]))


def _given(match: re.Match[str]) -> bool:
    quoted = match["quoted"] is not None
    if match["json"] and not quoted:
        return False  # a number in JSON
    value = match["quoted"] if quoted else match["bare"]
    return is_literal(value, quoted) if match["strong"] else is_random(value)


def _credentials(match: re.Match[str]) -> bool:
    return bool(match["scheme"]) or is_random(match["masked"], 8)


def _bearer(match: re.Match[str]) -> bool:
    return len(match["masked"]) >= 24 or re.search(_DIGIT, match["masked"]) is not None


def _password(match: re.Match[str]) -> bool:
    return re.match(r"[$<{%*]", match["masked"]) is None


def _vendor(marker: str, chars: str, least: int) -> Rule:
    mark = re.escape(marker)
    return Rule(
        (marker,),
        rf"{START}(?P<masked>{mark}(?P<rest>[{chars}]{{{least},}}+))",
        rf"{START}(?P<value>{mark}[{chars}]*+)\Z",
        decide=_account if marker in ("org-", "proj_") else _mixed,
    )


def _jwt() -> Rule:
    return Rule(
        ("eyJ",),
        rf"{START}(?<!-)(?P<masked>eyJ[\w-]{{8,}}+\.[\w-]{{8,}}+(?:\.[\w-]*+)*+)",
        rf"{START}(?<!-)(?P<value>eyJ[\w.-]*+)\Z",
    )


def _key_file() -> Rule:
    begin = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    body = r"(?:[^-]++|-(?!----))*+"
    begun = r"-----BEGIN [A-Z0-9 ]{0,60}-{0,5}"
    return Rule(
        ("-----BEGIN ",),
        rf"(?P<masked>{begin}(?:{body}-----END [A-Z0-9 ]{{0,40}}-----|[A-Za-z0-9+/=\s\\]*+))",
        rf"(?P<value>{begun}|{begin}{body}(?:-----[A-Z0-9 ]{{0,60}}-{{0,4}})?)\Z",
    )


def _begun(text: str) -> str:
    """A pattern of the beginnings of a text, none of it too."""
    pattern = ""
    for letter in reversed(text):
        pattern = f"(?:{re.escape(letter)}{pattern})?"
    return pattern


def _assignment() -> Rule:
    name = rf"(?i:(?P<strong>{_STRONG})|{_WEAK})"
    bare = rf"(?P<bare>{_BARE}(?:[=:]{_BARE}){{0,3}}+={{0,2}}+)(?!\(|\[(?!redacted\]))"
    return Rule(
        ("api", "access", "private", "passw", "passphrase", "pwd", "secret", "token", "credential", "auth"),
        rf"{name}{_GIVEN}(?:{_QUOTE}(?P<quoted>{_QUOTED}{{6,}}+)(?=[\"'\\])|{bare})",
        rf"{name}{_GIVEN}(?P<value>{_QUOTE}?{_QUOTED}*+{_begun('[redacted')})\Z",
        fold=True,
        decide=_given,
    )


def _header() -> Rule:
    start = (
        rf"(?i:authorization){_QUOTE}?\s{{0,4}}[:=]\s{{0,4}}{_QUOTE}?(?:(?P<scheme>(?i:{_SCHEME}))\s{{1,4}})?"
    )
    value = r"[A-Za-z0-9._~+/-]"
    return Rule(
        ("authorization",),
        rf"{start}(?P<masked>{value}{{6,}}+={{0,2}}+)",
        rf"{start}(?P<value>{value}*+=*+)\Z",
        fold=True,
        decide=_credentials,
    )


def _bearer_token() -> Rule:
    start, value = r"(?i:bearer)(?:\s{1,4}|%20)", r"[A-Za-z0-9._~+/=-]"
    return Rule(
        ("bearer",),
        rf"{start}(?P<masked>{value}{{8,}}+)",
        rf"{start}(?P<value>{value}*+)\Z",
        fold=True,
        decide=_bearer,
    )


def _netrc() -> Rule:
    start = r"machine\s\S{1,80}\s{1,4}login\s\S{1,80}\s{1,4}password\s"
    return Rule(
        ("machine ",),
        rf"{start}(?P<masked>[^\s\[]{{4,}}+)",
        rf"{start}(?P<value>[^\s\[]*+)\Z",
    )


def _address() -> Rule:
    start, value = r"""://[^\s/:@"'<>\\\[\]]{0,60}:""", r"""[^\s/"'<>\\\[\]]"""
    return Rule(
        ("://",),
        rf"{start}(?P<masked>{value}{{1,200}})@",
        rf"{start}(?P<value>{value}{{0,201}})\Z",
        decide=_password,
    )


RULES = (
    *(_vendor(marker, *shape) for marker, shape in VENDORS.items()),
    _jwt(),
    _key_file(),
    _assignment(),
    _header(),
    _bearer_token(),
    _netrc(),
    _address(),
)
NAMED = tuple(rule for rule in RULES if rule.fold)
"""Those that know a secret by the name before it; where it ends, another one may say."""
