"""Llama 3.2 1B and 3B, Llama 4: calls in Python or as JSON, as the prompt asked, or as the model pleases."""

from __future__ import annotations

import re
from collections.abc import Sequence

from environments.parsers.bare_json import LlamaJson
from environments.parsers.base import ParsedCall
from environments.parsers.grammar import Context, Grammar
from environments.parsers.pythonic import Pythonic
from environments.parsers.reader import Step


class Llama(Grammar):
    """`[f(a=1)]` or `{"name": ..., "parameters": {...}}`, with marks or without; written in Python."""

    PYTHON = Pythonic("<|python_start|>", "<|python_end|>", bare=True)
    JSON = LlamaJson()
    openers = (*PYTHON.openers, *JSON.openers)
    noise = re.compile(rf"[\[{{]+(?=[\[{{])|{PYTHON.noise.pattern}|{JSON.noise.pattern}")

    def read(self, opener: str, context: Context) -> Step[None]:
        form = self.PYTHON if opener in self.PYTHON.openers else self.JSON
        yield from form.read(opener, context)

    def render(self, calls: Sequence[ParsedCall]) -> str:
        return self.PYTHON.render(calls)
