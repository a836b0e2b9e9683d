"""Where structure stands in a text: the tags of the from/value form, and tokens of chat templates.

A tokenizer that meets a control token in a value takes it for the real one. Most are told by their shape
(`<|im_end|>`, `<turn|>`, `<｜User｜>`), the others by name: those that the parsers know, and those that only
templates have. Of each, one character is told, which, written otherwise, breaks the token. What tells it (the
text before and after) holds no such character, so that each can be replaced and put back by itself.

Not covered: words that a template takes as a switch (`/no_think`), as users mean them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from environments.parsers.families import FAMILIES, STOP_TOKENS, THINKING
from environments.parsers.thinking import SCRATCH_PADS

_OURS = ("think", "tools", "tool_call", "tool_response", "REASONING_SCRATCHPAD")
_TAGS = (
    r"bos|eos|pad|unk|mask|sop|eop|(?:BOS|EOS)_TOKEN|(?:start|end)_of_(?:turn|image)|image_soft_token",
    r"(?:start|end)_function_(?:call|declaration|response)|escape|arg_key|arg_value",
    r"fim_(?:prefix|middle|suffix|pad)|(?:unused|reserved_|extra_id_|SPECIAL_)\d{1,4}",
    r"(?:seed|minimax|mm):\w{1,40}|longcat_\w{1,40}",
    r"image|video|audio",  # where trainers put what a turn shows
)
_SQUARE = (
    r"INST|SYSTEM_PROMPT|MODEL_SETTINGS|AVAILABLE_TOOLS|TOOL_(?:CALLS|RESULTS|CONTENT)|ARGS|CALL_ID|THINK",
    r"IMG(?:_BREAK|_END)?|(?:BEGIN_)?AUDIO|TRANSCRIBE|PREFIX|MIDDLE|SUFFIX|BOS|EOS|EOT|PAD|UNK|[gs]?MASK",
)
_NAME = r"[^\s<>|｜◁\[\]\"\\&]{1,64}"


def _known(pattern: str) -> Iterator[str]:
    """Names of the parsers' marks of this form."""
    tokens = [pair for pair in THINKING if pair not in SCRATCH_PADS]  # those of prompts are text
    thinking = [mark for pair in tokens for mark in (pair.opener, pair.closer)]
    calls = [mark for family in FAMILIES.values() for mark in family.grammar.openers]
    for mark in (*thinking, *STOP_TOKENS, *calls):
        if found := re.fullmatch(pattern, mark):
            yield re.escape(found[1])


def _any_of(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(dict.fromkeys(names))})"


_ANGLE_NAMES = _any_of((*_OURS, *_TAGS, *_known(r"</?([a-z_:]+)>")))
_SQUARE_NAMES = _any_of((*_SQUARE, *_known(r"\[/?(\w+)\]")))

STRUCTURE: tuple[tuple[str, str, str], ...] = (
    ("", "<", f"/?{_ANGLE_NAMES}>"),
    ("", "<", rf"(?:\||｜(?!DSML)){_NAME}[|｜]>"),
    ("", "<", r"\|/?[a-z_]{1,32}>|/?[a-z_]{1,32}\|>|\|\"\|>"),  # Gemma 4
    ("", "<", "</?SYS>>"),  # Llama 2
    ("", "<", r"\][\w ]{1,40}\[>"),  # MiniMax
    ("", "[", rf"/?{_SQUARE_NAMES}\]"),
    ("", "[", r"\|/?\w{1,40}\|\]"),  # EXAONE
    ("", "[", "e~"),
    (r"\]", "~", "!?b"),
    (r"\]![a-z]", "~", ""),
    ("", "◁", "/?[a-z_]{1,40}▷"),
    ("", "｜", "DSML"),
)
"""What stands before, the character, what follows: two patterns around it, the first of a fixed length."""
