"""What a reader sees of a model's answer: thinking removed, mark-up and foreign digits made plain."""

from __future__ import annotations

import re
import unicodedata

_THINKING = r"think|thinking|thought|reasoning|scratchpad|reasoning_scratchpad"
_THOUGHT = re.compile(rf"<({_THINKING})>(?:(?!<\1>).)*?</\1>", re.I | re.S)
_THOUGHT_END = re.compile(rf"</(?:{_THINKING})>", re.I)
_THOUGHT_START = re.compile(rf"<(?:{_THINKING})>", re.I)
_STOP_TOKEN = re.compile(r"<\|[a-z_]{2,30}\|>|</s>")
_ANNOTATION = re.compile(r"<<[^<>]{0,200}>>")
_ANSWER_BLOCK = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.I | re.S)
_LATEX_WRAPPER = re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:bf|rm|it)|mbox)\s*\{([^{}]*)\}")
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_DIGIT_GAP = re.compile(r"(?<=\d)(?:[\u00a0\u2009\u202f'’]|\\[!,:; ])(?=\d{3}(?!\d))")
_CHARACTERS = str.maketrans("，．：−–－＝！％　", ",.:---=!% ")


def visible(text: str) -> str:
    """Without thinking, stop tokens and calculator annotations; the last of the `<answer>` blocks."""
    if "<" not in text:
        return text
    if stop := _STOP_TOKEN.search(text):
        text = text[: stop.start()]
    text = _THOUGHT.sub("\n", text)
    text = _THOUGHT_END.split(text)[-1]  # what stands before a lone closing tag is thinking
    text = _THOUGHT_START.split(text, maxsplit=1)[0]
    blocks = _ANSWER_BLOCK.findall(text)
    return _ANNOTATION.sub("", blocks[-1] if blocks else text)


def plain(text: str) -> str:
    """With ASCII digits and signs, digit groups joined or set apart by commas, LaTeX and bold undone."""
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
        text = text.translate(_CHARACTERS)
    if "\\" in text:
        text = text.replace("{,}", ",").replace("\\$", "$").replace("\\%", "%").replace("\\!", "")
        text = re.sub(r"\\(?:left|right|[()\[\]])", " ", text)
        text = _LATEX_WRAPPER.sub(r" \1 ", text)
        text = _FRACTION.sub(r" \1/\2 ", text)
    return _DIGIT_GAP.sub("", text).replace("*" * 2, "").replace("`", "")
