"""A model family: its grammar, and what else stands in its turns."""

from __future__ import annotations

from dataclasses import dataclass

from environments.parsers.grammar import Grammar


@dataclass(frozen=True)
class Thinking:
    """How a block of reasoning is marked."""

    opener: str
    closer: str
    shown: bool = False
    """It stays in the content, mark-up included; calls in it are none all the same."""


THINK = Thinking("<think>", "</think>")


@dataclass(frozen=True)
class Family:
    name: str
    grammar: Grammar
    thinking: tuple[Thinking, ...] = (THINK,)
    stop_tokens: tuple[str, ...] = ()
    """Dropped at the end of the text."""
    silent_between: bool = False
    """Its content ends with the first call; text between two calls is told of in the errors."""
