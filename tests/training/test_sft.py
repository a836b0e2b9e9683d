"""How many steps the warm start takes, and what the learning rate does in them."""

from __future__ import annotations

from typing import Any

import pytest

from environments.catalogue import load_environment
from rl_cli.config.profiles import load_profile
from rl_cli.config.tree import SftSection

pytestmark = pytest.mark.train


@pytest.mark.parametrize(
    ("steps", "most", "cooldown", "passes_at", "looks", "taken"),
    [
        (4, 20, 6, 4, [4], 10),
        (4, 20, 6, 14, [4, 14], 20),
        (4, 20, 6, None, [4, 14], 14),
        (4, 6, 6, 4, [4], 6),
        (4, 4, 6, 4, [4], 4),
        (4, 4, 6, None, [4], 4),
    ],
)
def test_the_most_steps_hold_the_cool_down_too(
    steps: int, most: int, cooldown: int, passes_at: int | None, looks: list[int], taken: int
):
    from rl_cli.training.sft import train_sft
    from rl_cli.training.tiny_model import TinyConfig, build_model, build_tokenizer

    rows = load_environment("gsm8k-mini").warm_start(0, 8)
    tokenizer = build_tokenizer("".join(segment.text for segment in row) for row in rows)
    section = SftSection(steps=steps, max_steps=most, cooldown_steps=cooldown, batch_size=2, warmup_steps=0)
    seen: list[int] = []
    rates: dict[int, float] = {}

    def note(step: int, figures: dict[str, Any]) -> None:
        if "gate" in figures:
            seen.append(step)
        if figures.get("learning_rate") is not None:
            rates[step] = figures["learning_rate"]

    result = train_sft(
        build_model(TinyConfig(), 0), tokenizer, rows, section, 0,
        measure=lambda: float(passes_at is not None and len(seen) + 1 == len(looks)),
        on_figures=note, should_stop=lambda: False,
    )  # fmt: skip
    assert (seen, result.steps, result.reached) == (looks, taken, passes_at is not None)
    last = max(rates, default=0)
    if passes_at is not None and last > passes_at + 1:
        assert rates[last] < section.learning_rate


def test_cpu_demo_looks_at_the_gate_up_to_step_500_as_measured():
    section = SftSection(**load_profile("cpu-demo").defaults["sft"])
    assert (section.steps, section.max_steps - section.cooldown_steps, section.cooldown_steps) == (
        250,
        500,
        50,
    )
