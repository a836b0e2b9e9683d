"""The word problems of gsm8k-mini, solved with a calculator over several turns."""

from __future__ import annotations

import random

from environments.base import WarmStartSegment
from environments.gsm8k_mini import Gsm8kMini
from environments.word_problems import tool_warm_start_rows


class ToolMath(Gsm8kMini):
    name = "tool-math"
    description = "Two-step word problems with a calculator: each step is a tool call, then the answer."
    profiles = ("cpu-demo",)
    stand_in = None

    def toolsets(self, rng: random.Random) -> tuple[str, ...]:
        return ("math",)

    def warm_start(self, seed: int, count: int) -> list[list[WarmStartSegment]] | None:
        return [
            [WarmStartSegment(text, trained) for text, trained in row]
            for row in tool_warm_start_rows(seed, count)
        ]
