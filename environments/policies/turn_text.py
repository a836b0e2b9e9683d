"""A model's whole turn, as text -> content, reasoning, calls, and the calls that could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from environments.parsers.base import Parsed
from environments.parsers.parser import Family
from environments.policies.model_family import without_calls

QUOTES = ("`", "'", '"')


def read_turn(
    family: Family, text: str, tools: Sequence[dict[str, Any]], in_reasoning: bool = False
) -> Parsed:
    """Takes a turn apart; a mark right after a quotation mark is only spoken of, and no error.

    Args:
        tools: The tools that were offered, as OpenAI writes them; without any, calls stay text.
        in_reasoning: The prompt has opened a block of reasoning.
    """
    parsed = (family if tools else without_calls(family)).parse(text, tools, in_reasoning)
    return replace(parsed, errors=[e for e in parsed.errors if not text[: e.position].endswith(QUOTES)])


def call_errors(parsed: Parsed) -> list[str]:
    """Why calls could not be read, as the model is told it."""
    return [f"at character {error.position}: {error.reason}" for error in parsed.errors]
