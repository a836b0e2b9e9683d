"""JSON that is read while it comes: where a value ends, and what it is, without building it twice.

A value that is there as a whole is passed at the speed of the standard library; one that is cut, or is no
JSON, is passed token by token. Both ways accept the same texts: JSON without NaN and Infinity, nested at
most `DEEPEST` levels; raw line breaks in strings are allowed, and told escaped. Nothing recurses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from json import scanner
from typing import Any, NoReturn

from environments.parsers.reader import Broken, Reader, Said, Step, finish, reader_of

DEEPEST = 500
"""Levels of arrays and objects; what is nested deeper is no call."""
FIRST_WINDOW, WINDOW_GROWTH, LONGEST_TOKEN = 2048, 8, 8
"""Characters; times; characters."""
_STRING_PART = re.compile(r'(?:[^"\\]+|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+')
_STRING_START = re.compile(r"\\(?:u[0-9A-Fa-f]{0,3})?")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_PART = re.compile(r"[-+.0-9eE]*")
_WORD = re.compile(r"[A-Za-z]*")
_SPACE = re.compile(r"[ \t\n\r]*")
_CLOSES = {"{": "}", "[": "]"}
_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\]+|\\.)*+")(?P<colon>\s*:)?|(?P<bare>[^\s"{}\[\],:]+)|\s+',
)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_STRICT = scanner.make_scanner(json.JSONDecoder(parse_constant=_no_constant))  # type: ignore[arg-type]
_LENIENT = json.JSONDecoder(strict=False)
_CONTROLS = {code: json.dumps(chr(code))[1:-1] for code in range(32)}
Rewrite = Callable[[str], str]


def load(text: str) -> Any:
    """The value of a text that `pass_value` has passed."""
    return _LENIENT.decode(text)


def strict_json(text: str) -> str | None:
    """The text as strict JSON, where it is one value and nothing else."""
    reader = reader_of(text)
    said: list[str] = []
    try:
        finish(pass_value(reader, said.append))
    except Broken:
        return None
    return "".join(said) if reader.at == len(text) else None


def members(text: str) -> list[tuple[str, str]]:
    """Key and value of each member of a text that is one JSON object; the values as their JSON text."""
    return finish(_members(reader_of(text)))


def _members(reader: Reader) -> Step[list[tuple[str, str]]]:
    found: list[tuple[str, str]] = []
    yield from reader.space()
    reader.at += 1
    while True:
        yield from reader.space()
        if (yield from reader.accept("}")):
            return found
        if (yield from reader.accept(",")):
            yield from reader.space()
        key = yield from pass_string(reader)
        yield from reader.space()
        reader.at += 1
        yield from reader.space()
        begun = yield from pass_value(reader)
        found.append((key, reader.between(begun, reader.position)))


def rewritten(text: str, key: Rewrite, string: Rewrite, bare: Rewrite) -> str:
    """JSON text in another notation: without white space, its keys, strings and bare words replaced.

    Args:
        key: Is given a key, decoded.
        string: Is given any other string, decoded.
        bare: Is given a number, true, false or null.
    """

    def of(token: re.Match[str]) -> str:
        if token["string"]:
            decoded = str(load(token["string"]))
            return f"{key(decoded)}:" if token["colon"] else string(decoded)
        return bare(token["bare"]) if token["bare"] else ""

    return _TOKEN.sub(of, text)


def pass_value(reader: Reader, said: Said | None = None) -> Step[int]:
    """Passes one value, from its first character.

    Args:
        said: Is given the text of the value as it is passed, as strict JSON.

    Returns:
        Where it begins; `reader.between` gives its text.

    Raises:
        Broken: It is no JSON, or the text ends in it. The reader stands where it fails.
    """
    start = reader.position
    end = _whole_value(reader)
    if end:
        if said:
            said(reader.text[reader.at : end])
        reader.at = end
    else:
        yield from _pass_by_token(reader, said)
    return start


def pass_string(reader: Reader) -> Step[str]:
    """Passes a string, and returns it decoded."""
    start = yield from pass_value(reader)
    return str(load(reader.between(start, reader.position)))


def _whole_value(reader: Reader) -> int:
    """Where the value that begins here ends in `reader.text`; 0 where that is not known.

    It is looked for in windows that grow: an error costs the library a pass over all that it was given.
    """
    text, at, size = reader.text, reader.at, FIRST_WINDOW
    while True:
        window = text[at : at + size]
        whole = at + size >= len(text)
        try:
            value, end = _STRICT(window, 0)
        except json.JSONDecodeError as error:
            cut = error.msg.startswith("Unterminated string") or error.pos > len(window) - LONGEST_TOKEN
            if whole or not cut:
                return 0
        except (StopIteration, ValueError, RecursionError):
            return 0
        else:
            break
        size *= WINDOW_GROWTH
    if not isinstance(value, str | dict | list):
        return 0  # a number may go on
    # A string holds no level, however many brackets are in it.
    if window.count("[", 0, end) + window.count("{", 0, end) > DEEPEST and _is_too_deep(value):
        return 0
    return at + end


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        inside: list[Any] = []
        for one in level:
            inside += one.values() if isinstance(one, dict) else one
        level = [one for one in inside if isinstance(one, dict | list)]
        if not level:
            return False
    return True


def _pass_by_token(reader: Reader, said: Said | None) -> Step[None]:
    open_: list[str] = []
    wants = "value"  # value, value or end, key or end, key, colon, comma
    while True:
        yield from _pass_space(reader, said)
        sign = reader.text[reader.at] if (yield from reader.need(1)) else ""
        if not sign:
            raise Broken("the JSON is cut off")
        if wants.startswith("value"):
            if sign in "{[":
                _say(reader, 1, said)
                open_.append(sign)
                if len(open_) > DEEPEST:
                    raise Broken(f"the JSON is nested more than {DEEPEST} levels deep")
                wants = "key or end" if sign == "{" else "value or end"
                continue
            if sign == '"':
                yield from _string(reader, said)
            elif sign == "]" and wants == "value or end":
                _say(reader, 1, said)
                open_.pop()
            else:
                yield from _bare(reader, said)
        elif wants.startswith("key"):
            if sign == '"':
                yield from _string(reader, said)
                wants = "colon"
                continue
            if sign != "}" or wants == "key":
                raise Broken("the JSON has something else than a key in quotes")
            _say(reader, 1, said)
            open_.pop()
        elif wants == "colon":
            if sign != ":":
                raise Broken("the JSON has no colon after a key")
            _say(reader, 1, said)
            wants = "value"
            continue
        elif sign == ",":
            _say(reader, 1, said)
            wants = "key" if open_[-1] == "{" else "value"
            continue
        elif sign == _CLOSES[open_[-1]]:
            _say(reader, 1, said)
            open_.pop()
        else:
            raise Broken("the JSON has no comma or closing bracket where one must be")
        if not open_:
            return
        wants = "comma"


def _say(reader: Reader, count: int, said: Said | None) -> None:
    if said and count:
        said(reader.text[reader.at : reader.at + count])
    reader.at += count


def _pass_space(reader: Reader, said: Said | None) -> Step[None]:
    while True:
        found = _SPACE.match(reader.text, reader.at)
        assert found
        _say(reader, found.end() - reader.at, said)
        if reader.at < len(reader.text) or reader.ended:
            return
        yield


def _string(reader: Reader, said: Said | None) -> Step[None]:
    _say(reader, 1, said)
    while True:
        found = _STRING_PART.match(reader.text, reader.at)
        assert found
        if said and found[0]:
            said(found[0] if found[0].isprintable() else found[0].translate(_CONTROLS))
        reader.at = found.end()
        rest = reader.text[reader.at : reader.at + 6]
        if rest.startswith('"'):
            _say(reader, 1, said)
            return
        if rest and not (_STRING_START.fullmatch(rest) and not reader.ended):
            raise Broken("a string of the JSON has a backslash that means nothing")
        if reader.ended:
            raise Broken("the JSON is cut off in a string")
        yield


def _bare(reader: Reader, said: Said | None) -> Step[None]:
    part = _NUMBER_PART if reader.text[reader.at] in "-0123456789" else _WORD
    start = reader.position
    while True:
        found = part.match(reader.text, reader.at)
        assert found
        _say(reader, found.end() - reader.at, said)
        if reader.at < len(reader.text) or reader.ended:
            break
        yield
    word = reader.between(start, reader.position)
    if not (_NUMBER.fullmatch(word) if part is _NUMBER_PART else word in ("true", "false", "null")):
        raise Broken("the JSON has something that is no value")
