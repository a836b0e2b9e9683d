"""Where an answer is stated: a box, a #### line, <answer> tags, "the answer is", else the last number."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from environments.rewards.boxes import last_box
from environments.rewards.conditions import has_alternative
from environments.rewards.last_sentence import from_last_sentence
from environments.rewards.number_words import begins_with_number_word, words_to_digits
from environments.rewards.plain_text import CURRENCY, plain
from environments.rewards.quantities import ON_CONDITION, Quantity, Refused, first_quantity
from environments.rewards.retractions import CONFIRMED, TAKEN_BACK
from environments.rewards.withdrawn import SIGNS, withdrawal

LONGEST_STATEMENT = 400
"""Characters after "the answer is" in which its number stands."""
MOST_LOOKED_AT = 50
"""Of #### lines, and of "the answer is", from the end, that are searched for a number."""

_ANSWER_TAG = re.compile(r"<answer>", re.I)
_ANSWER_TAG_END = re.compile(r"</answer>", re.I)
_HEADING = re.compile(r"\s*(?:(?:step|part|case|section|problem|question)\b|\d{1,2}[.):]\s+[^\d\s])", re.I)

_LEAD = (
    r"(?:\s|[:=*_$\"'(\[{~≈]|approximately\b|approx\.?|about\b|roughly\b|around\b|exactly\b|simply\b|just\b|only\b"
    r"|therefore\b|thus\b|equal to\b|definitely\b|probably\b|\\boxed\b|[A-Za-z]\w?\s*=|约|大约|等于)*+"
)
_ANNOUNCEMENT = re.compile(
    r"(?:(?<![A-Za-z])(?:answers?|ans)(?![A-Za-z])[^.:=\n\d]{0,60}?"
    r"(?:\b(?:is|are|equals|was|should be|must be|becomes)\b|[:=]|\s[-—]+\s|[*_ ]{0,4}\n)"
    r"|(?:答案|答え)[^。：:\n\d]{0,12}?(?<!至少|至多|最多|最少|超过|大于|小于|多于|少于)(?:是|为|[:=]|は)|答\s*:)",
    re.I,
)
_SAID = re.compile(
    rf"{SIGNS}|[-+]?\s?{CURRENCY}?\s?[-+]?\.?\d"
    r"|\\?[a-z]*(?:nan|inf|infinity|unknown|undefined|none)\b|[x-z∞?]\W",
    re.I,
)
_SENTENCE_END = re.compile(
    r"(?<!approx)(?<!vs)[.!?](?![\d!]|\w|[?!\s]{0,4}(?i:or|maybe|perhaps)\b)|[。!\n]"
    rf"|[;；](?!\s*-?{CURRENCY}?\d)"
)
_BULLET = re.compile(r"\A[\s:*_]{0,20}\n[ \t]*[-*•][ \t]+(?=\S{0,4}\d)")


def stated_quantity(text: str) -> Quantity | None:
    """The number that a text (in plain notation, without thinking) states as its answer.

    The last explicit statement counts, else the last sentence with a number in it; what is taken back later
    does not.

    Raises:
        Refused: The statement names no single number, or was taken back.
    """
    text, tagged, after = _tagged(text)
    if (quantity := _correction(after)) is not None:
        return quantity
    box, line, said = last_box(text), _last_marked_line(text), _last_announcement(text)
    place = max(box.start if box else -1, line[0] if line else -1, said or -1)
    if (quantity := _correction(text, max(place, 0))) is not None:
        return quantity
    if place >= 0 and has_alternative(text, _sentence_start(text, place), place + LONGEST_STATEMENT):
        raise Refused(ON_CONDITION)
    if box and place == box.start:
        return _explicit(box.content, boxed=True)
    if line and place == line[0]:
        return _explicit(line[1])
    if said is not None:
        return _announced(text, said)
    if tagged and "\n" not in text.strip():
        return _explicit(text)
    return _implicit(text)


def _correction(text: str, start: int = 0) -> Quantity | None:
    """What is stated after the last words that take an answer back; None where none do. Raises Refused."""
    taken_back = deque(TAKEN_BACK.finditer(text, start), maxlen=1)
    if not taken_back:
        return None
    rest = text[taken_back[0].end() :]
    quantity = _implicit(rest.strip(" \t\n,:;.!*_-—…"))
    if quantity is None and not CONFIRMED.search(rest):
        raise Refused("it takes its answer back")
    return quantity


def _implicit(text: str) -> Quantity | None:
    """The number after "the answer is", not at once, else that of the last sentence with one."""
    for announcement in _last(_ANNOUNCEMENT, text):
        if quantity := _announced(text, announcement.end()):
            return quantity
    return from_last_sentence(text)


def _announced(text: str, start: int) -> Quantity | None:
    """What the sentence at `start` states, and what follows it where it only withdraws a number."""
    sentence = _sentence(text[start : start + LONGEST_STATEMENT])
    quantity = _in_sentence(sentence)
    return from_last_sentence(text[start:]) if quantity is None and withdrawal(sentence) else quantity


def _tagged(text: str) -> tuple[str, bool, str]:
    """The content of the last answer tags that hold something, else the whole text; and what follows them."""
    limit = len(text)
    for start, opened in [tag.span() for tag in _ANSWER_TAG.finditer(text)][::-1]:
        end = _ANSWER_TAG_END.search(text, opened, limit)
        if content := text[opened : end.start() if end else limit].strip():
            return content, True, text[end.end() :] if end else ""
        limit = start
    return text, False, ""


def _explicit(statement: str, boxed: bool = False) -> Quantity | None:
    """The number of a statement. Raises Refused, also where it is withdrawn."""
    quantity = _in_sentence(statement, boxed)
    if quantity is None and (reason := withdrawal(statement)):
        raise Refused(reason)
    return quantity


def _in_sentence(statement: str, boxed: bool = False) -> Quantity | None:
    if not re.search(r"\d", statement):
        lead = re.match(_LEAD, statement, re.I)
        words = statement[lead.end() if lead else 0 :]
        if begins_with_number_word(words):
            statement = plain(words_to_digits(words))
    return first_quantity(statement, boxed)


def _last_marked_line(text: str) -> tuple[int, str] | None:
    """The place and text of the last #### line that states something; headings of that level do not."""
    end = len(text)
    for _ in range(MOST_LOOKED_AT):
        start = text.rfind("####", 0, end)
        if start < 0:
            return None
        stop = text.find("\n", start, end)
        line = text[start : stop if stop >= 0 else end].strip("# \t")
        if not _HEADING.match(line):
            if re.search(rf"\d|{SIGNS}", line) or begins_with_number_word(line):
                return start, line
            if not text[start:end].strip("# \t\n")[len(line) :].strip():
                raise Refused("the marked line holds no number")
        end = start
    return None


def _last_announcement(text: str) -> int | None:
    """Where the last statement begins that goes on with a number at once."""
    for found in _last(_ANNOUNCEMENT, text):
        lead = re.compile(_LEAD, re.I).match(text, found.end(), found.end() + LONGEST_STATEMENT)
        start = lead.end() if lead else found.end()
        if _SAID.match(text, start) or begins_with_number_word(text[start : start + 100]):
            return found.end()
    return None


def _last(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    return reversed(deque(pattern.finditer(text), maxlen=MOST_LOOKED_AT))


def _sentence(text: str) -> str:
    text = _BULLET.sub("", text, count=1).lstrip(" \n\t:*_$=")
    end = _SENTENCE_END.search(text)
    return text[: end.start()] if end else text


def _sentence_start(text: str, place: int) -> int:
    """Where the sentence of a place begins, or LONGEST_STATEMENT before it."""
    earliest = max(0, place - LONGEST_STATEMENT)
    ends = [text.rfind(end, earliest, place) for end in (". ", "\n\n", "。")]
    return max([earliest, *ends])
