"""Where an answer is stated: a box, a #### line, <answer> tags, "the answer is", else the last number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from environments.rewards.number_words import begins_with_number_word, words_to_digits
from environments.rewards.plain_text import plain
from environments.rewards.quantities import Quantity, Refused, first_quantity, last_quantity

LONGEST_STATEMENT = 400
"""Characters after "the answer is" in which its number stands."""
MOST_LOOKED_AT = 50
"""Of #### lines, and of "the answer is", from the end, that are searched for a number."""


@dataclass(frozen=True)
class Box:
    start: int
    end: int
    content: str


_BRACE = re.compile(r"\\(?:f?boxed|fbox)\s*\{|\\[{}]|[{}]")
_BETWEEN_BOXES = re.compile(r"[\s$\\;{}.()]*+(?:or|and|to|vs\.?|或|和|或者|&|,)[\s$\\,;{}.()]*+", re.I)
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
    r"|(?:答案|答え)[^。：:\n\d]{0,12}?(?:是|为|[:=]|は)|答\s*:)",
    re.I,
)
_RETRACTION = re.compile(
    r"\b(?:wait|actually|correction|sorry|oops|scratch that|on second thought|my mistake)\b[^\n\d]{0,60}?"
    r"\b(?:it is|it's|it should be|that is|that's|should be|make that|must be|is really)\b",
    re.I,
)
_TAKEN_BACK = re.compile(
    r"(?:^|[.!?,;:…。(\n—-])[\s*_\"]{0,4}(?:(?:no|oh|ah|but|hm+)\b[\s,.!…-]{0,4}){0,2}"
    r"(?:wait\b(?=\s*[,.!:;…—-]|\s+(?:no|that|this|it|I)\b)|correction\b|oops\b|(?:scratch|strike) that\b"
    r"|hold on\b|let me correct\b|(?:等等|不对)"
    r"|on second thoughts?\b|my (?:mistake|bad|error)\b"
    r"|(?:actually|sorry)\b[\s,:]{1,3}(?=-?[$€£]?\d[\d.,]{0,30}(?:\s[a-z]{1,20})?[.!]?\s{0,3}(?:\n|\Z)))"
    r"|\b(?:that|this|it|which|answer|result)(?:'s|\s(?:is|was))\s"
    r"(?:wrong|incorrect|a mistake|not (?:right|correct))\b"
    r"|\bno,?\swait\s?[,.!:;…—-]"
    r"|\bI\s(?:was wrong|(?:need|have) to correct"
    r"|made an?\s(?:\w{1,20}\s)?(?:mistake|error)|mis(?:calculated|counted|read|took))\b",
    re.I,
)
_CONFIRMED = re.compile(
    r"\byes\b|(?:\b(?:is|are|was)|'s)\s(?:(?:indeed|still)\s)?(?:correct|right|fine)\b"
    r"|\bchecks out\b|\bstands\b",
    re.I,
)
_CLOSING = re.compile(
    r"[\s*_(>#-]*(?:let me know|(?:I )?hope|feel free|please (?:let|feel|note)|would you|do you"
    r"|shall I|shall we|want me|if you(?:'d| (?:need|have|want|would|like))|(?:side )?notes?[*_]*\s*:"
    r"|n\.?b\.|p\.?s\.|disclaimer|this assumes|assum(?:es|ing|ptions?)\b|good luck|thank"
    r"|(?:I'm |I am )?(?:happy|glad) to|(?:I|we) (?:can|could) (?:also )?(?:help|solve|explain|show|do)\b)"
    r"|[^=\n]{0,80}\b(?:other|more|next|remaining) (?:\d{1,3} )?(?:problem|question|example|exercise)s?\b",
    re.I,
)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_SAID = re.compile(
    r"[-+]?\s?[$€£¥₹]?\s?[-+]?\.?\d|\\?[a-z]*(?:nan|inf|infinity|unknown|undefined|none)\b|[x-z∞?]\W", re.I
)
_SENTENCE_END = re.compile(r"(?<!approx)(?<!vs)[.!?](?![\d!])(?!\w)|[。!\n]|[;；](?!\s*[-$]?\d)")
_BULLET = re.compile(r"\A[\s:*_]{0,20}\n[ \t]*[-*•][ \t]+(?=\S{0,4}\d)")
_GIVES_UP = re.compile(
    r"\b(?:I|we)\s+(?:cannot|can't|can not|could not|couldn't|am unable|are unable|do not know|don't know)\b"
    r"|\bcannot be (?:determined|solved|found|computed|answered)|not enough information|无法|不知道|不能确定",
    re.I,
)


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
    box, line, said = _last_box(text), _last_marked_line(text), _last_announcement(text)
    place = max(box.start if box else -1, line[0] if line else -1, said or -1)
    if (quantity := _correction(text, max(place, 0))) is not None:
        return quantity
    if box and place == box.start:
        return _explicit(box.content, boxed=True)
    if line and place == line[0]:
        return _explicit(line[1])
    if said is not None:
        return _explicit(_sentence(text[said : said + LONGEST_STATEMENT]))
    if tagged and "\n" not in text.strip():
        return _explicit(text)
    return _implicit(text)


def _correction(text: str, start: int = 0) -> Quantity | None:
    """What is stated after the last words that take an answer back; None where none do. Raises Refused."""
    taken_back = list(_TAKEN_BACK.finditer(text, start))
    if not taken_back:
        return None
    rest = text[taken_back[-1].end() :]
    quantity = _implicit(rest.strip(" \t\n,:;.!*_-—…"))
    if quantity is None and not _CONFIRMED.search(rest):
        raise Refused("it takes its answer back")
    return quantity


def _implicit(text: str) -> Quantity | None:
    """The number after "the answer is", not at once, else that of the last sentence with one."""
    for announcement in _last(_ANNOUNCEMENT, text):
        start = announcement.end()
        if quantity := _explicit(_sentence(text[start : start + LONGEST_STATEMENT])):
            return quantity
    return _from_last_sentence(text)


def explicit_marks(text: str) -> dict[str, int]:
    """How often each explicit mark stands in a text: "####", "boxed", "answer"."""
    return {
        "####": len(re.findall(r"^[ \t]*#{4}(?!#)[ \t]*\S", text, re.M)),
        "boxed": len(_boxes(text)[0]),
        "answer": len(_ANSWER_TAG.findall(text)),
    }


def _tagged(text: str) -> tuple[str, bool, str]:
    """The content of the last answer tags that hold something, else the whole text; and what follows them."""
    opening = list(_ANSWER_TAG.finditer(text))
    for tag, following in zip(opening[::-1], [None, *opening[::-1]], strict=False):
        limit = following.start() if following else len(text)
        end = _ANSWER_TAG_END.search(text, tag.end(), limit)
        if content := text[tag.end() : end.start() if end else limit].strip():
            return content, True, text[end.end() :] if end else ""
    return text, False, ""


def _explicit(statement: str, boxed: bool = False) -> Quantity | None:
    if not re.search(r"\d", statement):
        lead = re.match(_LEAD, statement, re.I)
        words = statement[lead.end() if lead else 0 :]
        if begins_with_number_word(words):
            statement = plain(words_to_digits(words))
    return first_quantity(statement, boxed)


def _last_box(text: str) -> Box | None:
    if "\\" not in text:
        return None
    boxes, unclosed = _boxes(text)
    filled = [box for box in boxes if box.content]
    if unclosed is not None and (not boxes or unclosed > boxes[-1].end):
        raise Refused("the box is not closed")
    if len(filled) > 1:
        other, last = filled[-2:]
        if other.content != last.content and _BETWEEN_BOXES.fullmatch(text, other.end, last.start):
            raise Refused("several boxes")
    return filled[-1] if filled else None


def _boxes(text: str) -> tuple[list[Box], int | None]:
    """The closed boxes in the order of their starts, and where the last one starts that is not closed."""
    open_braces: list[re.Match[str]] = []
    boxes: list[Box] = []
    for brace in _BRACE.finditer(text):
        if brace[0] in ("\\{", "\\}"):
            continue
        if brace[0] != "}":
            open_braces.append(brace)
        elif open_braces:
            opening = open_braces.pop()
            inner = boxes and boxes[-1].start > opening.start()  # of boxes in a box the innermost counts
            if opening[0] != "{" and not inner:
                content = text[opening.end() : brace.start()].strip("{} \n")
                boxes.append(Box(opening.start(), brace.end(), content))
    unclosed = [brace.start() for brace in open_braces if brace[0] != "{"]
    return boxes, unclosed[-1] if unclosed else None


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
            if re.search(r"\d", line) or begins_with_number_word(line):
                return start, line
            if not text[start:end].strip("# \t\n")[len(line) :].strip():
                raise Refused("the marked line holds no number")
        end = start
    return None


def _last_announcement(text: str) -> int | None:
    """Where the last statement begins that goes on with a number at once."""
    places = [-1]
    for pattern in (_ANNOUNCEMENT, _RETRACTION):
        for found in _last(pattern, text):
            lead = re.compile(_LEAD, re.I).match(text, found.end(), found.end() + LONGEST_STATEMENT)
            start = lead.end() if lead else found.end()
            if _SAID.match(text, start) or begins_with_number_word(text[start : start + 100]):
                places.append(found.end())
                break
    return max(places) if max(places) >= 0 else None


def _last(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    return iter(list(pattern.finditer(text))[-MOST_LOOKED_AT:][::-1])


def _sentence(text: str) -> str:
    text = _BULLET.sub("", text, count=1).lstrip(" \n\t:*_$=")
    end = _SENTENCE_END.search(text)
    return text[: end.start()] if end else text


def _without_closing(text: str) -> str:
    """Without the last paragraphs that are notes or offers to the reader."""
    paragraphs = _BLANK_LINE.split(text)
    last = len(paragraphs)
    while last > 1 and (not paragraphs[last - 1].strip() or _CLOSING.match(paragraphs[last - 1])):
        last -= 1
    kept = "\n\n".join(paragraphs[:last])
    return kept if re.search(r"\d", kept) else text


def _from_last_sentence(text: str) -> Quantity | None:
    text = _without_closing(text)
    digit = re.compile(r"\d")
    for line in reversed(text.split("\n")):
        if not digit.search(line):
            if _GIVES_UP.search(line):
                raise Refused("it says that there is no answer")
            continue
        for sentence in reversed(re.split(r"(?<=[.!?])\s+|[。；]", line)):
            if _GIVES_UP.search(sentence):
                raise Refused("it says that there is no answer")
            if digit.search(sentence):
                return last_quantity(sentence)
    if words := re.fullmatch(r"[\s*$\"]*+([A-Za-z\u4e00-\u9fff -]{2,80}+)[\s*.。!$\"]*+", text):
        converted = plain(words_to_digits(words[1].strip()))
        return first_quantity(converted) if re.fullmatch(r"-?\d+(?:/\d+)?( percent)?", converted) else None
    return None
