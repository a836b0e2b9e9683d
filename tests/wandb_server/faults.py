"""Planted faults: what an ill server does with a request."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["hang", "reset", "trickle", "slow", "status", "malformed", "graphql_error"]


@dataclass
class Fault:
    """What happens to some requests.

    A port that refuses connections is `WandbServer.refuse()`: that is no request.
    """

    kind: Kind
    """hang: no answer; reset: RST; trickle: one byte a second; slow: right, after `delay`; status: an HTTP
    status; malformed: 200 with broken JSON; graphql_error: 200 with `errors`."""
    where: str = "all"
    """all, graphql, file_stream, storage, or the name of a GraphQL operation."""
    status: int = 500
    retry_after: int | None = None
    """Seconds, as the header says them."""
    delay: float = 2.0
    """slow only, in seconds."""
    times: int | None = None
    """For so many requests; None for all."""
    after: float = 0.0
    """Seconds from planting to the first request that it meets."""
    seconds: float | None = None
    """How long it lasts from then on; None for ever."""
    hits: int = 0
    planted: float = field(default_factory=time.monotonic)

    def meets(self, kinds: set[str]) -> bool:
        """Whether it happens to a request of these kinds now; counts it then."""
        age = time.monotonic() - self.planted - self.after
        over = age < 0 or (self.seconds is not None and age > self.seconds)
        spent = self.times is not None and self.hits >= self.times
        if over or spent or (self.where != "all" and self.where not in kinds):
            return False
        self.hits += 1
        return True


EVERY_FAULT: dict[str, Fault] = {
    "hang": Fault("hang"),
    "reset": Fault("reset"),
    "500": Fault("status", status=500),
    "429": Fault("status", status=429, retry_after=2),
    "429-long": Fault("status", status=429, retry_after=600),
    "trickle": Fault("trickle"),
    "malformed": Fault("malformed"),
    "graphql-error": Fault("graphql_error", where="graphql"),
    "401": Fault("status", status=401),
    "403": Fault("status", status=403),
    "404": Fault("status", status=404),
    "slow": Fault("slow"),
}
"""By name; to be planted as copies."""
