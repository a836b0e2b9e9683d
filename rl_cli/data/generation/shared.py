"""What all samples of a batch share."""

from __future__ import annotations

from typing import Any

from environments.policies.base import Usage
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.generation.provider import BatchPolicy
from rl_cli.data.generation.scoring import Scorer
from rl_cli.data.generation.toolsets import Draws
from rl_cli.spending.meter import SessionMeter
from tools.dispatcher import tool_schemas


class Shared:
    """Whom they ask, who pays, who judges, and what they are offered.

    Args:
        config: Of the batch.
        policy: Whom they ask.
        meter: Who pays.
        scorer: Who judges them; None: nobody.
    """

    def __init__(
        self, config: BatchConfig, policy: BatchPolicy, meter: SessionMeter, scorer: Scorer | None
    ) -> None:
        self.config, self.policy, self.meter, self.scorer = config, policy, meter, scorer
        self.draws = Draws(config)
        self._schemas: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        self._priced = meter.price_of(policy.name, Usage(1, 1)) is not None

    def schemas(self, toolsets: tuple[str, ...]) -> list[dict[str, Any]]:
        """Of the tools that are offered; one list for all that are offered the same."""
        if toolsets not in self._schemas:
            self._schemas[toolsets] = tool_schemas(toolsets)
        return self._schemas[toolsets]

    def cost(self, usage: Usage) -> float | None:
        """Dollars; None where the price is not known."""
        return round(usage.dollars, 9) if self._priced else None
