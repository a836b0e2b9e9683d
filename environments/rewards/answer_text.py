"""What of a model's answer is meant for its reader: no thinking, no later turns, no comments."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from environments.parsers.families import STOP_TOKENS, THINKING


def _any_of(marks: Iterable[str]) -> str:
    return "|".join(map(re.escape, dict.fromkeys(marks)))


def _letters(mark: str) -> str:
    return re.sub("[^a-z]", "", mark.lower())


_THINKING = re.compile(
    "(?:seed|ant)?think(?:ing)?|(?:inner)?thoughts?|reason(?:ing)?|(?:reasoning|thinking)?scratchpad|cot"
    "|chainofthought|(?:inner|internal)?monologue|reflection|analysis"
)
"""Names of tags around thinking beside the families', in small letters, without what joins words."""
_TAG = re.compile(
    r"<\s?(?P<close>/?)\s?(?P<name>[a-z][a-z_: -]{1,24})(?:\s[^<>]{0,80})?>"
    r"|\[(?P<close2>/?)(?P<name2>think|thinking)\]|◁(?P<close3>/?)(?P<name3>[a-z]{3,12})▷"
    r"|<\|(?:(?:begin|start)|(?P<close4>end))_(?:of_)?(?P<name4>[a-z]{5,9})\|>"
    rf"|(?P<opener>{_any_of(pair.opener.strip() for pair in THINKING)})"
    rf"|(?P<closer>{_any_of(pair.closer.strip() for pair in THINKING)})",
    re.I,
)
_OPENERS = {_letters(pair.opener) for pair in THINKING}
_FAMILY_NAMES = {
    _letters(mark): _letters(pair.opener) for pair in THINKING for mark in (pair.opener, pair.closer)
}
_ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}\d{0,2}|#\d{1,6}|#x[0-9A-Fa-f]{1,5});")
_ROLE = "(?:user|human|system|tool|ipython|observation|environment)"
_END_OF_TURN = re.compile(
    rf"{_any_of(STOP_TOKENS)}|<eos>|\[INST\]|<[|｜](?:im_)?(?:user|human)(?:_token)?[|｜]>"
    rf"|(?:<(?:[|｜][a-z_]{{1,30}}[|｜]?|start_of_turn)>|\]~b\])\s{{0,4}}{_ROLE}\b",
    re.I,
)
"""A stop token of any family, or the beginning of another role's turn."""
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<>]{0,80}<\|message\|>")
_UNSEEN = re.compile(r"<<[^<>]{0,200}>>|<!--(?:(?!<!--|-->).)*+-->", re.S)
"""Calculator annotations and HTML comments."""


def visible(text: str) -> str:
    """Without thinking, closed or not, what follows the end of the turn, calculator annotations and comments.

    A closing tag with no opening one ends thinking that began in the prompt: all before it is thinking.
    """
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if not any(c in text for c in "<[◁]"):
        return text
    text = _final_channel(text)
    if end := _END_OF_TURN.search(text):
        text = text[: end.start()]
    return _UNSEEN.sub("", "\n".join(_without_thinking(text)[0]))


def thinking_blocks(text: str) -> int:
    """How many blocks of thinking there are; an opening and a closing tag that stand alone count as one."""
    return _without_thinking(text)[1]


def _without_thinking(text: str) -> tuple[list[str], int]:
    """The visible pieces, and the number of blocks between them."""
    pieces: list[str] = []
    start, inside, blocks = 0, None, 0
    for tag in _TAG.finditer(text):
        name = _thinking_name(tag)
        if name is None:
            continue
        closes = any(tag[group] for group in ("close", "close2", "close3", "close4", "closer"))
        if inside is None and not closes:
            pieces.append(text[start : tag.start()])
            inside, blocks = name, blocks + 1
        elif inside is None:
            pieces, start, blocks = [], tag.end(), blocks + 1
        elif closes and name == inside:
            inside, start = None, tag.end()
    if inside is None:
        pieces.append(text[start:])
    return pieces, blocks


def _thinking_name(tag: re.Match[str]) -> str | None:
    """The name of a tag around thinking, in one spelling; None where it is another tag."""
    if mark := tag["opener"] or tag["closer"]:
        return _FAMILY_NAMES[_letters(mark)]
    written = tag["name"] or tag["name2"] or tag["name3"] or tag["name4"]
    names = map(_letters, (written, written.split()[0]))  # what follows the first word may be attributes
    return next((name for name in names if name in _OPENERS or _THINKING.fullmatch(name)), None)


def _final_channel(text: str) -> str:
    """The last final message of a text in OpenAI's Harmony format; no text at all where it only thinks."""
    channels = list(_CHANNEL.finditer(text))
    if not channels:
        return text
    final = [channel for channel in channels if channel[1] == "final"]
    return text[final[-1].end() :] if final else ""
