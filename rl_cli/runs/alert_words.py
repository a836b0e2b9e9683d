"""Where in a run something was seen, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def at_step(event: Mapping[str, Any]) -> str:
    """` at step 12`, ` at sft step 12`, ` at step 12 of attempt 1`; empty where the event does not say.

    Args:
        event: An alert: with `attempt` where it is of an earlier one.
    """
    step, phase, attempt = event.get("step"), event.get("phase"), event.get("attempt")
    of = f" of attempt {attempt}" if isinstance(attempt, int) else ""
    if not isinstance(step, int):
        return f" in attempt {attempt}" if of else ""
    return f" at {phase} step {step}{of}" if phase not in (None, "grpo") else f" at step {step}{of}"
