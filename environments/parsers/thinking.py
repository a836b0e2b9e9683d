"""How blocks of reasoning are marked, and where a mark is one."""

from __future__ import annotations

from dataclasses import dataclass

from environments.parsers.reader import Reader, Step

QUOTES = tuple("`'\"(")
LONGEST_INDENT = 80
"""Characters."""
_ENDS_OF_SENTENCES = (".", ":", "!", "?")
_BEFORE_A_MENTION = (" ", "\t", *QUOTES)
"""What stands before a closing tag that is only spoken of."""


@dataclass(frozen=True)
class Thinking:
    opener: str
    closer: str
    shown: bool = False
    """It stays in the content, mark-up included; calls in it are none all the same."""


THINK = Thinking("<think>", "</think>")
_PADS = (
    "scratch_pad",
    "scratchpad",
    "REASONING_SCRATCHPAD",
    "thinking",
    "reasoning",
    "reflection",
    "thought",
    "thoughts",
)
SCRATCH_PADS = tuple(Thinking(f"<{name}>", f"</{name}>", shown=True) for name in _PADS)
"""What a prompt may have asked any model for."""


def line_begins(reader: Reader) -> bool:
    """Whether only white space stands before the reader in its line."""
    return not line_before(reader).strip()


def line_before(reader: Reader) -> str:
    """The line up to the reader, or its end."""
    position = reader.position
    return reader.between(max(0, position - LONGEST_INDENT), position).rpartition("\n")[2]


def before(reader: Reader) -> str:
    """The character before the reader; empty at the beginning of the text."""
    position = reader.position
    return reader.between(position - 1, position) if position else ""


def opens(reader: Reader, block: Thinking) -> Step[bool]:
    """Whether the opening tag here, in the middle of a line, opens a block.

    A model speaks of a tag in quotes or between spaces; a draft follows right after it, or
    a sentence ends before it.
    """
    if line_begins(reader):
        return True
    if before(reader) in QUOTES:
        return False
    if line_before(reader).rstrip().endswith(_ENDS_OF_SENTENCES):
        return True
    yield from reader.need(len(block.opener) + 1)
    after = reader.text[reader.at + len(block.opener) :][:1]
    return after.isalnum() or after in ("\n", "<")


def closes(reader: Reader, closer: str, mentioned: bool) -> Step[bool]:
    """Whether the closing tag here, of a block that was not seen to open, ends one.

    Args:
        mentioned: An opening tag was spoken of; this one may go with it.
    """
    if line_begins(reader) or (not mentioned and before(reader) not in _BEFORE_A_MENTION):
        return True
    if mentioned:
        return False
    yield from reader.need(len(closer) + 1)
    return reader.text[reader.at + len(closer) :][:1] in ("", "\n")
