"""What secrets look like that nobody has told us of: vendors' prefixes, headers, key files, assignments.

Each rule is tried only where its marker stands, so its cost is that of finding the marker, and no expression
goes back over what it has read. A rule says what is masked, and where text that is still coming is unfinished.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

# Letters before a marker make it part of a word, unless they belong to an escape sequence.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=[0-9;\[]m))"
_QUOTE = r"""(?:\\{0,3}["'])"""
_GIVEN = rf"(?:(?P<json>{_QUOTE})\s{{0,4}}(?:=>|[:=])\s{{0,4}}|\s{{0,4}}(?::=|=>|[:=])\s{{0,4}})"
_QUOTED = r"""[^\s"'\\\[\]]"""
_BARE = r"""[^\s"'\\<>\[\](){},;&|`]"""
_STRONG = r"(?:passw(?:or)?d|passphrase|pwd|secret|(?:api|access|private|secret)[_-]?key)"
_WEAK = r"(?:token|credentials?|auth)"
_KEY_CHARS = r"A-Za-z0-9"
_VENDORS: dict[str, tuple[str, int]] = {
    "sk-": (r"A-Za-z0-9_*-", 16),
    **dict.fromkeys(("sk-ant-", "sk-or-", "sk-proj-", "sk-test-", "sk-live-"), (r"A-Za-z0-9_*-", 6)),
    **dict.fromkeys(("sk_live_", "sk_test_", "rk_live_", "rk_test_"), (_KEY_CHARS, 10)),
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "hf_", "gsk_", "npm_"), (_KEY_CHARS, 20)),
    **dict.fromkeys(("github_pat_", "wandb_v1_", "pypi-", "tgp_v1_", "ya29."), (r"A-Za-z0-9_-", 20)),
    **dict.fromkeys(("xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-"), (r"A-Za-z0-9-", 10)),
    **dict.fromkeys(("glpat-", "nvapi-", "pplx-", "xai-", "r8_", "dop_v1_"), (r"A-Za-z0-9_-", 16)),
    **dict.fromkeys(("AKIA", "ASIA"), (r"A-Z0-9", 16)),
    "AIza": (r"A-Za-z0-9_-", 30),
    "org-": (_KEY_CHARS, 8),
    "proj_": (_KEY_CHARS, 8),
}


@dataclass(frozen=True)
class Rule:
    """A kind of secret.

    Attributes:
        markers: One of them stands where `found` begins to match.
        found: What follows from there; its last group that took part is masked.
        unfinished: Matches from the marker to the end of a text whose next characters may decide.
        fold: Markers count in any case.
        decide: A last look at the match.
    """

    markers: tuple[str, ...]
    found: re.Pattern[str]
    unfinished: re.Pattern[str]
    fold: bool = False
    decide: Callable[[re.Match[str]], bool] = lambda match: True


def is_random(text: str, shortest: int = 16) -> bool:
    """Whether `text` looks drawn, not written: long, with letters and digits."""
    return (
        len(text) >= shortest
        and any(c.isdigit() for c in text)
        and any(c.isalpha() for c in text)
        and re.fullmatch(r"[\w.+/=~:!@#$%^*?-]+", text) is not None
        and not _REFERENCE.match(text)
    )


_REFERENCE = re.compile(
    r"""[$<{%*]|~?/|\.{1,2}/|[A-Za-z]:[\\/]|[a-z]+://          # a placeholder, a path, an address
      |[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z     # a variable, an attribute
      |(?i:string|none|null|true|false|required|optional|password|secret|redacted|token|unknown|missing
         |invalid|incorrect|default|example|changeme|wrong|expired)\Z""",
    re.VERBOSE,
)


def is_literal(text: str, quoted: bool) -> bool:
    """Whether what is assigned to a password or an API key is the thing itself."""
    if len(text) < 6 or _REFERENCE.match(text) or any(c.isspace() for c in text):
        return False
    return quoted or any(c.isdigit() for c in text) or any(c in "!@#$%^*+~?" for c in text)


def is_assigned_secret(name: str, value: str) -> bool:
    """Whether `value`, the value of a field called `name`, is a secret by that name."""
    if match := re.search(rf"(?:(?P<s>{_STRONG})|(?P<w>{_WEAK})|(?P<a>authorization))\Z", name[-40:], re.I):
        if match["s"]:
            return is_literal(value, quoted=True)
        scheme = re.match(r"(?i:basic|bearer|token|digest|negotiate|apikey)\s+\S", value)
        return bool(match["a"] and scheme) or is_random(value, 16 if match["w"] else 8)
    return False


def _mixed(match: re.Match[str]) -> bool:
    text = match[0].partition(match["mark"])[2]
    return any(c.isdigit() or c.isupper() for c in text)


def _account(match: re.Match[str]) -> bool:
    text = match["masked"][4:]
    return any(c.isdigit() for c in text) and any(c.isupper() for c in text)


def _given(match: re.Match[str]) -> bool:
    quoted = match["quoted"] is not None
    if match["json"] and not quoted:
        return False
    value = match["quoted"] if quoted else match["bare"]
    return is_literal(value, quoted) if match["strong"] else is_random(value)


def _credential(match: re.Match[str]) -> bool:
    return bool(match["scheme"]) or is_random(match["masked"], 8)


def _bearer(match: re.Match[str]) -> bool:
    value = match["masked"]
    return len(value) >= 24 or any(c.isdigit() for c in value)


def _address(match: re.Match[str]) -> bool:
    return not re.match(r"[$<{%*]", match["masked"])


def _vendor(marker: str, chars: str, least: int) -> Rule:
    mark = re.escape(marker)
    return Rule(
        (marker,),
        re.compile(rf"{_START}(?P<masked>(?P<mark>{mark})[{chars}]{{{least},}}+)"),
        re.compile(rf"{_START}(?P<value>{mark}[{chars}]*+)\Z"),
        decide=_account if marker in ("org-", "proj_") else _mixed,
    )


@cache
def rules() -> tuple[Rule, ...]:
    """All rules; those that mask from the marker on come first."""
    name = rf"(?:(?P<strong>{_STRONG})|{_WEAK})"
    pem = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    body = r"(?:[^-]++|-(?!----))*+"
    end = r"-----END [A-Z0-9 ]{0,40}-----"
    user = r"""://[^\s/:@"'<>\\\[\]]{0,60}:"""
    bearer = r"[A-Za-z0-9._~+/=-]"
    return (
        *(_vendor(marker, *shape) for marker, shape in _VENDORS.items()),
        Rule(
            ("eyJ",),
            re.compile(rf"{_START}(?P<masked>eyJ[\w-]{{8,}}+\.[\w-]{{8,}}+(?:\.[\w-]*+)*+)", re.A),
            re.compile(rf"{_START}(?P<value>eyJ[\w.-]*+)\Z", re.A),
        ),
        Rule(
            ("-----BEGIN ",),
            re.compile(rf"(?P<masked>{pem}(?:{body}{end}|[A-Za-z0-9+/=\s\\]*+))"),
            re.compile(
                rf"(?P<value>-----BEGIN [A-Z0-9 ]{{0,50}}(?:-{{0,5}}|-----{body}(?:-----[A-Z0-9 ]{{0,50}}-{{0,4}})?))\Z"
            ),
        ),
        Rule(
            (
                "passw",
                "passphrase",
                "pwd",
                "secret",
                "api",
                "access",
                "private",
                "token",
                "credential",
                "auth",
            ),
            re.compile(
                rf"{name}{_GIVEN}(?:{_QUOTE}(?P<quoted>{_QUOTED}{{6,400}}+)(?=[\"'\\])|(?P<bare>{_BARE}{{6,400}}+)(?!\())",
                re.I,
            ),
            re.compile(rf"{name}{_GIVEN}(?P<value>{_QUOTE}?(?:{_QUOTED}{{0,401}}+))\Z", re.I),
            fold=True,
            decide=_given,
        ),
        Rule(
            ("authorization",),
            re.compile(
                rf"authorization{_QUOTE}?\s{{0,4}}[:=]\s{{0,4}}{_QUOTE}?"
                rf"(?:(?P<scheme>basic|bearer|token|digest|negotiate|apikey)\s{{1,4}})?(?P<masked>[^\s\"'\\\[\],;<>]{{6,}}+)",
                re.I,
            ),
            re.compile(
                rf"authorization{_QUOTE}?\s{{0,4}}[:=]\s{{0,4}}{_QUOTE}?"
                rf"(?:(?:basic|bearer|token|digest|negotiate|apikey)\s{{1,4}})?(?P<value>[^\s\"'\\\[\],;<>]*+)\Z",
                re.I,
            ),
            fold=True,
            decide=_credential,
        ),
        Rule(
            ("bearer",),
            re.compile(rf"bearer(?:\s{{1,4}}|%20)(?P<masked>{bearer}{{8,}}+)", re.I),
            re.compile(rf"bearer(?:\s{{1,4}}|%20)(?P<value>{bearer}*+)\Z", re.I),
            fold=True,
            decide=_bearer,
        ),
        Rule(
            ("machine ",),
            re.compile(r"machine\s\S{1,80}\s{1,4}login\s\S{1,80}\s{1,4}password\s(?P<masked>[^\s\[]{4,}+)"),
            re.compile(r"machine\s\S{1,80}\s{1,4}login\s\S{1,80}\s{1,4}password\s(?P<value>[^\s\[]*+)\Z"),
        ),
        Rule(
            ("://",),
            re.compile(rf"""{user}(?P<masked>[^\s/"'<>\\\[\]]{{1,200}})@"""),
            re.compile(rf"""{user}(?P<value>[^\s/"'<>\\\[\]]{{0,201}})\Z"""),
            decide=_address,
        ),
    )
