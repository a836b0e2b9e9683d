"""What a reader sees of a model's answer: no thinking, nothing after the end of the turn, no comments."""

from __future__ import annotations

import html
import re

_THINKING = re.compile(
    "(?:seed|ant)?think(?:ing)?|(?:inner)?thoughts?|reason(?:ing)?|(?:reasoning|thinking)?scratchpad|cot"
    "|chainofthought|(?:inner|internal)?monologue|reflection|analysis"
)
"""Names of tags around thinking, in small letters and without what joins their words."""
_TAG = re.compile(
    r"<\s?(?P<close>/?)\s?(?P<name>[a-z][a-z_: -]{1,24})(?:\s[^<>]{0,80})?>"
    r"|\[(?P<close2>/?)(?P<name2>think|thinking)\]|◁(?P<close3>/?)(?P<name3>[a-z]{3,12})▷"
    r"|<\|(?:(?:begin|start)|(?P<close4>end))_(?:of_)?(?P<name4>[a-z]{5,9})\|>",
    re.I,
)
_ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}\d{0,2}|#\d{1,6}|#x[0-9A-Fa-f]{1,5});")
_END_OF_TURN = re.compile(
    r"<\|(?:im_end|endoftext|eot_id|eom_id|end_of_text|end|return|user|im_start\|>user)\|?>|</s>"
    r"|<(?:end_of_turn|eos)>|<｜end▁of▁sentence｜>",
    re.I,
)
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<>]{0,80}<\|message\|>")
_UNSEEN = re.compile(r"<<[^<>]{0,200}>>|<!--(?:(?!<!--|-->).)*+-->", re.S)
"""Calculator annotations and HTML comments."""


def visible(text: str) -> str:
    """Without thinking, closed or not, what follows the end of the turn, calculator annotations and comments.

    A closing tag with no opening one ends thinking that began in the prompt: all before it is thinking.
    """
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if not any(c in text for c in "<[◁"):
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
        name = _thinking_name(tag["name"] or tag["name2"] or tag["name3"] or tag["name4"])
        if name is None:
            continue
        closes = bool(tag["close"] or tag["close2"] or tag["close3"] or tag["close4"])
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


def _thinking_name(tag: str) -> str | None:
    """The name of a tag around thinking, in one spelling; what follows its first word may be attributes."""
    names = (re.sub("[_: -]", "", name.lower()) for name in (tag, tag.split()[0]))
    return next((name for name in names if _THINKING.fullmatch(name)), None)


def _final_channel(text: str) -> str:
    """The last final message of a text in OpenAI's Harmony format; no text at all where it only thinks."""
    channels = list(_CHANNEL.finditer(text))
    if not channels:
        return text
    final = [channel for channel in channels if channel[1] == "final"]
    return text[final[-1].end() :] if final else ""
