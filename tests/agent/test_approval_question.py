"""The question before a call, in the columns of a terminal."""

from __future__ import annotations

import pytest

from rl_cli.agent.approval_question import describe_call
from tests.agent.test_approvals import SPECS
from tools.spec import Estimate

WHAT = "go on with a run from step 10 to step 40, of rollouts that stop at the profile's limits, and so on"


@pytest.mark.parametrize("width", [40, 57, 80])
def test_no_word_of_the_question_is_broken_at_the_edge(width: int) -> None:
    shown, _ = describe_call(SPECS["spend_it"], {"what": WHAT}, Estimate(what=WHAT), width)
    assert all(len(line) <= width for line in shown.splitlines())
    words = {word.strip('"') for line in shown.splitlines() for word in line.split()}
    assert words >= set(WHAT.split())
