"""The number of the last sentence that has one, for an answer that states it in no other way."""

from __future__ import annotations

import re

from environments.rewards.number_words import words_to_digits
from environments.rewards.plain_text import plain
from environments.rewards.quantities import Quantity, Refused, first_quantity, last_quantity
from environments.rewards.retractions import CONFIRMED
from environments.rewards.withdrawn import SIGNS, withdrawal

_CLOSING = re.compile(
    r"[\s*_(>#-]*(?:let me know|(?:I )?hope|feel free|please (?:let|feel|note)|would you|do you"
    r"|shall I|shall we|want me|if you(?:'d| (?:need|have|want|would|like))|(?:side )?notes?[*_]*\s*:"
    r"|n\.?b\.|p\.?s\.|disclaimer|this assumes|assum(?:es|ing|ptions?)\b|good luck|thank"
    r"|(?:I'm |I am )?(?:happy|glad) to|(?:I|we) (?:can|could) (?:also )?(?:help|solve|explain|show|do)\b)"
    r"|[^=\n]{0,80}\b(?:other|more|next|remaining) (?:\d{1,3} )?(?:problem|question|example|exercise)s?\b",
    re.I,
)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_GIVES_UP = re.compile(
    r"\b(?:I|we)\s+(?:cannot|can't|can not|could not|couldn't|am unable|are unable|do not know|don't know)\b"
    r"|\bcannot be (?:determined|solved|found|computed|answered)|not enough information|无法|不知道|不能确定",
    re.I,
)
_QUESTION = re.compile(
    r"\W*(?:(?:is|are|was|were|could|can|might|would|should|does|do|did|may|will)\b|是不是|会不会).*\?\W*\Z",
    re.I,
)
_NUMBER = re.compile(rf"\d|{SIGNS}")


def from_last_sentence(text: str) -> Quantity | None:
    """The last number of the last sentence that has one, or a number in words that is all of `text`.

    Raises:
        Refused: That sentence names no single number, or a later one says that there is no answer.
    """
    text = _without_closing(text)
    for line in reversed(text.split("\n")):
        sentences = re.split(r"(?<=[.!?])\s+|[。；]", line) if _NUMBER.search(line) else [line]
        for sentence in reversed(sentences):
            if _GIVES_UP.search(sentence):
                raise Refused("it says that there is no answer")
            if _NUMBER.search(sentence):
                if _QUESTION.match(sentence) and not CONFIRMED.search(text.rpartition(sentence)[2]):
                    raise Refused("it asks, and states nothing")
                if (quantity := last_quantity(sentence)) is None:
                    raise Refused(withdrawal(sentence) or "the last number is none that may be the answer")
                return quantity
    return _in_words(text)


def _in_words(text: str) -> Quantity | None:
    words = re.fullmatch(r"[\s*$\"]*+([A-Za-z\u4e00-\u9fff -]{2,80}+)[\s*.。!$\"]*+", text)
    converted = plain(words_to_digits(words[1].strip())) if words else ""
    whole = re.fullmatch(r"(?!1 [a-z])-?\d+(?:/\d+| \d+/\d+)?( [a-z]+)?", converted)
    return first_quantity(converted) if whole else None


def _without_closing(text: str) -> str:
    """Without the last paragraphs that are notes or offers to the reader."""
    paragraphs = _BLANK_LINE.split(text)
    last = len(paragraphs)
    while last > 1 and (not paragraphs[last - 1].strip() or _CLOSING.match(paragraphs[last - 1])):
        last -= 1
    kept = "\n\n".join(paragraphs[:last])
    return kept if re.search(r"\d", kept) else text
