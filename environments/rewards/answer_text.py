"""What a reader sees of a model's answer: no thinking, nothing after the end of the turn, no annotations."""

from __future__ import annotations

import re

_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>think|thinking|thought|reasoning|scratchpad|reasoning_scratchpad|seed:think)"
    r"(?:\s[^<>]{0,80})?>|\[(?P<close2>/?)(?P<name2>think)\]|◁(?P<close3>/?)(?P<name3>think)▷",
    re.I,
)
_END_OF_TURN = re.compile(
    r"<\|(?:im_end|endoftext|eot_id|eom_id|end_of_text|end|return|user|im_start\|>user)\|?>|</s>"
    r"|<(?:end_of_turn|eos)>|<｜end▁of▁sentence｜>",
    re.I,
)
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<>]{0,80}<\|message\|>")
_ANNOTATION = re.compile(r"<<[^<>]{0,200}>>")


def visible(text: str) -> str:
    """Without thinking, closed or not, what follows the end of the turn, and calculator annotations.

    A closing tag with no opening one ends thinking that began in the prompt: all before it is thinking.
    """
    if not any(c in text for c in "<[◁"):
        return text
    text = _final_channel(text)
    if end := _END_OF_TURN.search(text):
        text = text[: end.start()]
    return _ANNOTATION.sub("", "\n".join(_without_thinking(text)[0]))


def thinking_blocks(text: str) -> int:
    """How many blocks of thinking there are; an opening and a closing tag that stand alone count as one."""
    return _without_thinking(text)[1]


def _without_thinking(text: str) -> tuple[list[str], int]:
    """The visible pieces, and the number of blocks between them."""
    pieces: list[str] = []
    start, inside, blocks = 0, None, 0
    for tag in _TAG.finditer(text):
        name = (tag["name"] or tag["name2"] or tag["name3"]).lower()
        closes = bool(tag["close"] or tag["close2"] or tag["close3"])
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


def _final_channel(text: str) -> str:
    """The last final message of a text in OpenAI's Harmony format; no text at all where it only thinks."""
    channels = list(_CHANNEL.finditer(text))
    if not channels:
        return text
    final = [channel for channel in channels if channel[1] == "final"]
    return text[final[-1].end() :] if final else ""
