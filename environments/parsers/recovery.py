"""Where reading goes on after JSON or Python that is broken.

What is quoted in a broken call is none: strings are passed as a whole, from where the call begins. But a
string that holds a mark, or the beginning of the next call, and has nothing after it that may follow one, is
most likely none: a quote is missing, or one too many.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from environments.parsers.reader import Reader, Step

LONGEST_BETWEEN = 2000
"""Characters between two strings that are looked at again: so the time stays linear."""
_QUOTE = re.compile("[\"']")
_NEXT_OBJECT = re.compile(r"\}\s*,\s*(?=\{\s*\Z)")


def skip_json(reader: Reader, start: int, marks: Sequence[str]) -> Step[None]:
    """From where JSON that begins at `start` has failed, to the first of `marks` that stands in no string."""
    if not (yield from reader.peek()):
        return
    begun, text = _last_string(reader, start)
    places = [place for place in map(text.find, marks) if place >= 0]
    if places:
        reader.go_to(begun + min(places))
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
    if any(mark in text for mark in marks):
        yield from skip_json(reader, start, marks)
        return False
    if not (yield from _skip(reader, start, _quotes(reader, start), marks, "{}", (",", "]"))):
        return False
    yield from reader.space()
    return (yield from reader.peek()) in ("]", ",", "{")


def skip_object(reader: Reader, start: int) -> Step[None]:
    """Passes the object that begins at `start`, by its braces; where they do not match, all of the text."""
    yield from _skip(reader, start, ['"'], (), "{}")


def skip_python_call(reader: Reader, start: int, closer: str, ends: Sequence[str]) -> Step[bool]:
    """Passes the call that begins at `start`, by its parentheses, or up to one of `ends` before them.

    Returns:
        False if `closer` comes first, or the end of the text: the reader stands there.
    """
    return (yield from _skip(reader, start, ["'''", '"""', "'", '"'], (closer,), "()", ends))


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
            if (yield from _is_no_string(reader, begun, marks)):
                yield from reader.until(marks)
                return False
        elif found in pair:
            depth += 1 if found == pair[0] else -1
            if depth <= 0:
                return True
    return False


def _is_no_string(reader: Reader, start: int, marks: Sequence[str]) -> Step[bool]:
    """Whether what was passed since `start` as a string is what stands between two; goes back there then."""
    end = reader.position
    if end - start > LONGEST_BETWEEN or not any(mark in reader.between(start, end) for mark in marks):
        return False
    yield from reader.space()
    if (yield from reader.peek()) in ("", *",:)}]"):
        reader.go_to(end)
        return False
    reader.go_to(start)
    return True


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
        before = text[:quote]
        if quote < 0 or (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            break
    return (start + quote + 1, text[quote + 1 : -1]) if quote >= 0 else (start, "")
