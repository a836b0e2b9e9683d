"""Where reading goes on after JSON or Python that is broken.

What is quoted in a broken call is none: strings are passed as a whole, from where the call begins. But a
string that holds the end of an object and then a mark, and has nothing after it that may follow one, is most
likely none: a quote is missing, or one too many.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from environments.parsers.reader import Reader, Step

LONGEST_BETWEEN = 2000
"""Characters between two strings that are looked at again: so the time stays linear."""
_QUOTE = re.compile("[\"']")
_NEXT_OBJECT = re.compile(r"\}\s*,\s*(?=\{\s*\Z)")
_ANOTHER_OBJECT = re.compile(r"\}[\s;]*(?=\{\s*\Z)")


def skip_json(reader: Reader, start: int, marks: Sequence[str]) -> Step[None]:
    """From where JSON that begins at `start` has failed, to the first of `marks` that stands in no string."""
    if not (yield from reader.peek()):
        return
    begun, text = _last_string(reader, start)
    place = _swallowed(text, marks)
    if place is not None and (yield from reader.peek()) != '"':
        reader.go_to(begun + place)
    else:
        yield from _skip(reader, start, _quotes(reader, start), marks)


def skip_member(reader: Reader, start: int, marks: Sequence[str]) -> Step[bool]:
    """From where a value in an array has failed, to what follows it: a comma, a bracket, the next object.

    Returns:
        False if that is not found: the reader stands where `skip_json` goes.
    """
    if not (yield from reader.peek()):
        return False
    failed = reader.position
    if reader.text[reader.at] == "{" and reader.between(start, failed).rstrip().endswith(","):
        return True  # its own brace is missing
    begun, text = _last_string(reader, start)
    if next_object := _NEXT_OBJECT.search(text):
        reader.go_to(begun + next_object.end())
        return True
    if _swallowed(text, marks) is not None:
        yield from skip_json(reader, start, marks)
        return False
    if not (yield from _skip(reader, start, _quotes(reader, start), marks, "{}", (",", "]"))):
        return False
    yield from reader.space()
    return (yield from reader.peek()) in ("]", ",", "{")


def skip_object(reader: Reader, start: int, marks: Sequence[str]) -> Step[None]:
    """Passes the object that begins at `start`, by its braces; where they do not match, up to one of `marks`.

    Where the next one begins in what seems to be a string, or because a brace is missing, it goes there.
    """
    failed = reader.position
    if (yield from reader.peek()) == "{" and reader.between(start, failed).rstrip().endswith("}"):
        return
    yield from _skip(reader, start, _quotes(reader, start), marks, "{}")


def skip_python_call(reader: Reader, start: int, marks: Sequence[str], ends: Sequence[str]) -> Step[bool]:
    """Passes the call that begins at `start`, by its parentheses, or up to one of `ends` before them.

    Returns:
        False if one of `marks` comes first, or the end of the text: the reader stands there.
    """
    return (yield from _skip(reader, start, ["'''", '"""', "'", '"'], marks, "()", ends))


def skip_quoted_list(reader: Reader, start: int) -> Step[None]:
    """Passes the list that begins at `start`, by its brackets; where they do not match, all of the text."""
    yield from _skip(reader, start, ["'", '"'], (), "[]")


def _skip(
    reader: Reader,
    start: int,
    quotes: Sequence[str],
    marks: Sequence[str],
    pair: str = "",
    ends: Sequence[str] = (),
) -> Step[bool]:
    """From `start` to after the bracket that closes the first one, or to one of `ends` before any of them.

    Returns:
        False if one of `marks` comes first, or the end of the text: the reader stands there.
    """
    reader.go_to(start)
    depth, signs = 0, [*quotes, *pair, *ends, *marks]
    while found := (yield from reader.until(signs)):
        if found in marks or (found in ends and not depth):
            return found in ends
        reader.at += len(found)
        if found in quotes:
            begun = reader.position
            yield from _pass_quoted(reader, found)
            if (yield from _is_no_string(reader, begun, found, marks, pair == "{}")):
                return False
        elif found in pair:
            depth += 1 if found == pair[0] else -1
            if depth <= 0:
                return True
    return False


def _is_no_string(reader: Reader, start: int, quote: str, marks: Sequence[str], objects: bool) -> Step[bool]:
    """Whether what was passed as a string since `start` is what stands between two; goes to what it holds.

    Args:
        objects: Another object may follow without a mark.
    """
    end = reader.position
    if end - start > LONGEST_BETWEEN:
        return False
    text = reader.between(start, end)
    place = _swallowed(text, marks)
    if objects and (next_object := _ANOTHER_OBJECT.search(text.removesuffix(quote))):
        place = min(next_object.end(), len(text) if place is None else place)
    if place is None:
        return False
    yield from reader.space()
    after = yield from reader.peek()
    closed = text.endswith(quote)
    if (closed and after in ("", *'",:)}]')) or (not closed and quote == '"'):
        reader.go_to(end)
        return False
    reader.go_to(start + place)
    return True


def _swallowed(text: str, marks: Sequence[str]) -> int | None:
    """Where one of `marks` stands in what seems to be a string, after the end of an object."""
    end = text.find("}")
    places = [place for mark in marks if end >= 0 and (place := text.find(mark, end)) >= 0]
    return min(places, default=None)


def _pass_quoted(reader: Reader, quote: str) -> Step[None]:
    """The rest of a string, from after its opening quote."""
    while (yield from reader.until(["\\", quote])) == "\\":
        reader.at += 1
        yield from reader.need(1)
        reader.at = min(reader.at + 1, len(reader.text))
    yield from reader.accept(quote)


def _quotes(reader: Reader, start: int) -> Sequence[str]:
    """What opens a string in a text that begins at `start`: a Python dict has single ones too."""
    first = _QUOTE.search(reader.between(start, reader.position + 1))
    return ["'", '"'] if first and first[0] == "'" else ['"']


def _last_string(reader: Reader, start: int) -> tuple[int, str]:
    """The string that the text read so far ends with, and where it begins; without one, nothing."""
    text = reader.between(start, reader.position).rstrip()
    if not text.endswith('"'):
        return start, ""
    quote = len(text) - 1
    while quote > 0:
        quote = text.rfind('"', 0, quote)
        first = quote
        while first > 0 and text[first - 1] == "\\":
            first -= 1
        if (quote - first) % 2 == 0:
            break
    return (start + quote + 1, text[quote + 1 : -1]) if quote >= 0 else (start, "")
