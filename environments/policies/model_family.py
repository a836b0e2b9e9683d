"""Which family a model is of: the form in which its turns are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from environments.parsers.base import ParsedCall
from environments.parsers.families import FAMILIES, parser_for
from environments.parsers.grammar import CannotRender, Context, Grammar
from environments.parsers.parser import Family
from environments.parsers.reader import Step
from environments.parsers.thinking import THINK

# The more specific first: several families write `<tool_call>`, each with something else in it.
_MARKS = (
    ("glm45", "<arg_key>"),
    ("seed_oss", "<seed:tool_call>"),
    ("qwen3_coder", "<function="),
    ("minimax_m2", "<minimax:tool_call>"),
    ("deepseek_v32", "<｜DSML｜function_calls>"),
    ("deepseek_v4", "<｜DSML｜tool_calls>"),
    ("deepseek_v3", "<｜tool▁calls▁begin｜>"),
    ("kimi_k2", "<|tool_calls_section_begin|>"),
    ("longcat", "<longcat_tool_call>"),
    ("mistral", "[TOOL_CALLS]"),
    ("granite", "<|tool_call|>"),
    ("gemma4", "<|tool_call>"),
    ("functiongemma", "<start_function_call>"),
    ("lfm2", "<|tool_call_start|>"),
    ("internlm", "<|plugin|>"),
    ("gpt_oss", "<|channel|>"),
    ("llama", "<|python_tag|>"),
    ("hermes", "<tool_call>"),
)


@lru_cache(64)
def family_for(model: str, template: str = "") -> Family:
    """How turns are read; what reads like reasoning in any model's turn is reasoning, and no text is lost.

    Args:
        model: Its name, as hubs and servers write it.
        template: Its chat template, where that is known: what a model is shown decides before its name does.

    Returns:
        The family; Hermes where neither tells.
    """
    shown = next((FAMILIES[name] for name, mark in _MARKS if mark in template), None)
    found = shown or parser_for(model.rpartition("/")[2]) or FAMILIES["hermes"]
    blocks = {block.opener: replace(block, shown=False) for block in (*found.thinking, THINK)}
    return replace(found, thinking=tuple(blocks.values()), silent_between=False)


class _NoCalls(Grammar):
    openers = ()

    def read(self, opener: str, context: Context) -> Step[None]:
        raise AssertionError("nothing opens a call")

    def render(self, calls: Sequence[ParsedCall]) -> str:
        raise CannotRender("calls have no form here")


def without_calls(family: Family) -> Family:
    """The same family where no tools are offered: what looks like a call is text."""
    return replace(family, grammar=_NoCalls())
