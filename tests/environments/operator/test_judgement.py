"""Stop or go on, by the figures of a check."""

from __future__ import annotations

from typing import Any

import pytest

from environments.policies.operator.judgement import judge
from environments.policies.operator.wording import Voice
from tests.environments.operator.simulated import PROGRESS

ENTROPY = {
    "rule": "entropy_collapse",
    "message": "entropy fell from 1.2 to 0.01",
    "action": "raise the temperature",
}
NO_GAIN = {"rule": "no_gain", "message": "no gain after 20 steps", "action": "stop"}
VALIDATION = {
    "rule": "validation_falling",
    "message": "validation accuracy fell from 0.6 to 0.4",
    "action": "stop",
}
FALLING = {"rule": "reward_falling", "message": "reward fell from 0.560 to 0.400", "action": "stop"}
JUMP = {"rule": "reward_jump", "message": "from 0.300 to 0.950", "action": "read the samples"}
EXPLOSION = {"rule": "entropy_explosion", "message": "entropy rose", "action": "lower the learning rate"}
NEWER = {"rule": "what_a_later_version_finds", "severity": "critical", "message": "?", "action": "look"}
CLIPPED = {"rule": "clipped", "message": "60% were cut off", "action": "raise grpo.max_new_tokens"}


@pytest.mark.parametrize(
    ("progress", "alerts", "stop"),
    [
        ({}, [], False),
        ({}, [CLIPPED], False),
        ({"reward_last": 0.40, "steps_since_best": 12}, [FALLING], True),
        ({"reward_last": 0.40, "steps_since_best": 12}, [], False),
        ({"reward_last": 0.25, "steps_since_best": 12}, [], True),
        ({"reward_last": 0.40, "steps_since_best": 3}, [FALLING], False),
        (
            {"reward_best": 0.03, "reward_last": 0.01, "reward_first": 0.02, "steps_since_best": 12},
            [FALLING],
            False,
        ),
        ({"reward_last": 0.48, "steps_since_best": 4}, [ENTROPY], True),
        ({}, [ENTROPY], False),
        ({"reward_last": 0.22, "reward_best": 0.25, "steps_since_best": 9}, [NO_GAIN], True),
        ({}, [NO_GAIN], False),
        ({}, [VALIDATION], True),
        ({"step": 150, "total_steps": 400, "steps_since_best": 170}, [], True),
        ({"step": 390, "total_steps": 400, "steps_since_best": 170}, [], False),
        ({"step": 30, "total_steps": 40, "steps_since_best": 20}, [], False),
        ({"reward_last": "NaN"}, [], False),
        ({"reward_last": 0.40, "steps_since_best": 12}, [JUMP], False),
        ({"reward_last": 0.48, "steps_since_best": 4}, [EXPLOSION], False),
        ({}, [NEWER], False),
        (
            {"reward_first": None, "reward_last": None, "reward_best": None, "steps_since_best": None},
            [ENTROPY],
            False,
        ),
    ],
)
def test_stop_or_go_on(progress: dict[str, Any], alerts: list[dict[str, Any]], stop: bool) -> None:
    status = {"progress": PROGRESS | progress, "alerts": alerts, "recent": []}
    assert judge(Voice("train"), status, alerts).stop is stop


def test_a_level_is_judged_and_not_one_bad_step() -> None:
    progress = PROGRESS | {"reward_last": 0.40, "steps_since_best": 12}
    steady = [{"reward/mean": value} for value in (0.55, 0.54, 0.56, 0.55, 0.40)]
    status = {"progress": progress, "alerts": [FALLING], "recent": steady}
    assert not judge(Voice("train"), status, [FALLING]).stop
    falling = [{"reward/mean": value} for value in (0.44, 0.42, 0.41, 0.42, 0.40)]
    assert judge(Voice("train"), status | {"recent": falling}, []).stop


def test_the_reason_has_the_figures_in_both_languages() -> None:
    for request in ("train", "训练"):
        reason = judge(Voice(request), {"progress": PROGRESS}, []).reason
        assert all(figure in reason for figure in ("0.213", "0.547", "0.561")), reason


def test_no_figures_at_all_go_on() -> None:
    assert not judge(Voice("train"), {}, []).stop
