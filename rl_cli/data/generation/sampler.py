"""One sample, attempted again where its sandbox broke."""

from __future__ import annotations

from environments.policies.base import Usage
from rl_cli.data.batch.items import Item
from rl_cli.data.batch.samples import row_key
from rl_cli.data.generation.attempt import Attempt
from rl_cli.data.generation.outcome import Outcome
from rl_cli.data.generation.shared import Shared

MOST_ATTEMPTS = 2


async def take_sample(shared: Shared, item: Item, number: int) -> Outcome:
    """One sample, to its end. Raises CancelledError only, when it is cancelled."""
    key, earlier = row_key(item, number), Usage()
    for turn in range(1, MOST_ATTEMPTS + 1):
        attempt = Attempt(shared, item, key, turn, earlier)
        outcome = await attempt.run()
        if outcome.reason != "sandbox":
            break
        earlier = attempt.usage()
    return outcome
