"""Structure inside values (see `control_tokens`): written so that nobody takes it for the real one.

In text, `<` of a tag or token becomes `&lt;` (`[` becomes `&#91;`, ...), and what already looks like that
gets one more `amp;`; in JSON they become `\\u003c`, `\\u005b`, ..., which every reader of JSON takes back.
Everything else stays as it is: `a < b`, `<div>`, `&lt;b>`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rl_cli.data.control_tokens import STRUCTURE

_CHARS = dict.fromkeys(char for _, char, _ in STRUCTURE)
_FOR_TEXT = {char: "&lt;" if char == "<" else f"&#{ord(char)};" for char in _CHARS}
_FROM_TEXT = {escaped: char for char, escaped in _FOR_TEXT.items()}
_FOR_JSON = {char: f"\\u{ord(char):04x}" for char in _CHARS}
_FROM_JSON = {escaped: char for char, escaped in _FOR_JSON.items()}


def _places(*spelled: Callable[[str], tuple[str, str]], also: tuple[str, ...] = ()) -> re.Pattern[str]:
    """Where structure stands, its character spelled in these ways: each gives the first letter and the rest.

    The letter comes first in each alternative, which lets `re` leap from one candidate to the next.
    """
    alternatives = [
        rf"{first}(?<={before}{first}){rest}(?={after})"
        for before, char, after in STRUCTURE
        for first, rest in (spell(char) for spell in spelled)
    ]
    return re.compile("|".join([*alternatives, *also]), re.DOTALL)


def _plain(char: str) -> tuple[str, str]:
    return re.escape(char), ""


def _entity(char: str) -> tuple[str, str]:
    return "&", rf"(?:amp;)*{re.escape(_FOR_TEXT[char][1:])}"


def _json_escape(char: str) -> tuple[str, str]:
    return r"\\", _FOR_JSON[char][1:]


_PLAIN = _places(_plain)
_IN_TEXT = _places(_plain, _entity)
_ESCAPED = _places(_entity)
_IN_JSON = _places(_json_escape, also=(r"\\.",))


def escape_text(text: str) -> str:
    return _IN_TEXT.sub(lambda found: _FOR_TEXT.get(found[0]) or f"&amp;{found[0][1:]}", text)


def unescape_text(text: str) -> str:
    """What `escape_text` was given."""
    return _ESCAPED.sub(lambda found: _FROM_TEXT.get(found[0]) or f"&{found[0][5:]}", text)


def escape_json(text: str) -> str:
    """JSON text of the same value without structure in it."""
    return _PLAIN.sub(lambda found: _FOR_JSON[found[0]], text)


def unescape_json(text: str) -> str:
    """What `escape_json` was given, if none of its structure was written with an escape before."""
    if "\\u" not in text:
        return text
    return _IN_JSON.sub(lambda found: _FROM_JSON.get(found[0], found[0]), text)
