"""What a command costs in a sandbox beside the same command bare, with many rollouts at once."""

from __future__ import annotations

import pytest

from tests.bench.sandboxes import figures
from tests.components import leave_out
from tools.sandboxes.kinds import usable

MOST = 1.5
"""Times the bare command."""
LONGEST = 0.05
"""Seconds for which the event loop may work on end: what else runs in it waits."""


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.parametrize("kind", ["local", "bubblewrap"])
def test_a_command_costs_little_more_than_bare_and_the_event_loop_goes_on(kind: str) -> None:
    if why := usable(kind):
        leave_out(f"{kind} ({why})")
    for measured in figures(kind):
        print(measured)
        assert measured.ratio <= MOST
        assert measured.blocks.busy <= LONGEST
