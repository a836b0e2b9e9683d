"""Python literals that are read while they come, and told as JSON. Nothing is evaluated, nothing recurses.

Strings in either kind of quotes, plain, triple or raw; numbers; True, False, None, and true, false, null;
lists and tuples, which become arrays; dicts whose keys are strings. Everything else is no literal.
"""

from __future__ import annotations

import re

from environments.parsers.argument_types import number_text
from environments.parsers.arguments_text import quoted
from environments.parsers.grammar import writable
from environments.parsers.json_value import rewritten
from environments.parsers.nested import Notation, pass_nested
from environments.parsers.reader import Broken, Reader, Said, Step

_WORD = re.compile(r"[A-Za-z_]*")
_NUMBER = re.compile(r"[-+.0-9eE_]*")
_PART = {quote: re.compile(rf"""(?:[^\\{quote}]+|\\[ntrbf"'\\])++""") for quote in "'\""}
"""What JSON writes the same way, but for quotes and line breaks."""
_PLAIN_PART = {quote: re.compile(rf"[^\\{quote}]+") for quote in "'\""}
_CONTROL = re.compile(r"[\x00-\x1f]")
_DIGITS = {"x": 2, "u": 4, "U": 8}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "\n": ""}
_OCTAL = re.compile("[0-7]*")
_CONSTANTS = {
    "True": "true",
    "False": "false",
    "None": "null",
    "true": "true",
    "false": "false",
    "null": "null",
}
_PYTHON = {"true": "True", "false": "False", "null": "None"}
LONGEST_NUMBER = 1000
"""Characters."""


class _Python(Notation):
    brackets = "[({"
    comma_at_end = True

    def scalar(self, reader: Reader, said: Said, path: list[str]) -> Step[None]:
        yield from _scalar(reader, said)

    def key(self, reader: Reader, said: Said) -> Step[str]:
        if (yield from reader.peek()) not in ("'", '"'):
            raise Broken("a dict has a key that is no string")
        yield from _scalar(reader, said)
        yield from reader.space()
        yield from reader.expect(":", "a dict has no colon after a key")
        said(": ")
        yield from reader.space()
        return ""


_NOTATION = _Python()


def pass_literal(reader: Reader, said: Said) -> Step[None]:
    """Passes one literal, from its first character; `said` is given its JSON as it comes.

    Raises:
        Broken: It is none, or the text ends in it.
    """
    yield from pass_nested(reader, _NOTATION, said)


def literal(value: str) -> str:
    """JSON text as a literal.

    Raises:
        CannotRender: A number in it is longer than what is read.
    """
    return rewritten(
        value, repr, repr, lambda word: _PYTHON.get(word) or writable(word, _NUMBER, LONGEST_NUMBER)
    )


def _scalar(reader: Reader, said: Said) -> Step[None]:
    sign = yield from reader.peek()
    if sign in ("'", '"') and sign:
        yield from _string(reader, said, raw=False)
    elif sign.isdigit() or sign in ("-", "+", "."):
        word = yield from reader.word(_NUMBER, LONGEST_NUMBER)
        number = number_text(word.replace("_", ""))
        if not number:
            raise Broken("a number cannot be read")
        said(number)
    else:
        word = yield from reader.word(_WORD, 8)
        if word in ("r", "R") and (yield from reader.peek()) in ("'", '"'):
            yield from _string(reader, said, raw=True)
        elif word in _CONSTANTS:
            said(_CONSTANTS[word])
        else:
            raise Broken("a value is no literal" if sign else "the call is cut off")


def _string(reader: Reader, said: Said, raw: bool) -> Step[None]:
    quote = yield from reader.peek()
    reader.at += 1
    closer = quote
    if (yield from reader.accept(quote)):
        if not (yield from reader.accept(quote)):
            said('""')
            return
        closer = quote * 3
    part = (_PLAIN_PART if raw else _PART)[quote]
    said('"')
    high = ""  # the first half of a pair of \u escapes
    while True:
        found = part.match(reader.text, reader.at)
        if found:
            if high:
                said(quoted(high)[1:-1])
                high = ""
            said(_as_json(found[0]))
            reader.at = found.end()
        sign = yield from reader.peek()
        if not sign:
            raise Broken("a string is cut off")
        if sign == quote:
            if (yield from reader.accept(closer)):
                break
            text = quote
            reader.at += 1
        elif sign == "\\":
            text = high + (yield from _escape(reader, raw))
            high = text if "\ud800" <= text <= "\udbff" and len(text) == 1 else ""
            if high:
                continue
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        else:
            continue
        said(quoted(high + text)[1:-1])
    if high:
        said(quoted(high)[1:-1])
    said('"')


def _as_json(part: str) -> str:
    """A part of a string whose escapes JSON knows too."""
    if '"' in part or "\\'" in part:
        # A backslash that is escaped escapes nothing: those are kept apart.
        parts = part.split("\\\\")
        bare = (text.replace('\\"', '"').replace("\\'", "'").replace('"', '\\"') for text in parts)
        part = "\\\\".join(bare)
    if _CONTROL.search(part):
        part = part.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
        part = _CONTROL.sub(lambda found: quoted(found[0])[1:-1], part)
    return part


def _escape(reader: Reader, raw: bool) -> Step[str]:
    """What a backslash and what follows it stand for; one that means nothing stays."""
    yield from reader.need(2)
    sign = reader.text[reader.at + 1 : reader.at + 2]
    reader.at += 1 + len(sign)
    if raw or not sign:
        return "\\" + sign
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    if sign in ("\\", "'", '"'):
        return sign
    if sign in "01234567":
        return chr(int(sign + (yield from reader.word(_OCTAL, 2)), 8))
    count = _DIGITS.get(sign, 0)
    yield from reader.need(count)
    digits = reader.text[reader.at : reader.at + count]
    if count and re.fullmatch(rf"[0-9A-Fa-f]{{{count}}}", digits) and int(digits, 16) < 0x110000:
        reader.at += count
        return chr(int(digits, 16))
    return "\\" + sign
