"""A policy whose every request is metered, for those who open its sessions without bounds."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from environments.policies.base import Bounds, OnDelta, Policy, Sampling, Session
from rl_cli.spending.meter import SessionMeter


class MeteredPolicy:
    """Gives a meter to the sessions of another policy.

    Args:
        policy: Who answers.
        meter: Who pays.
    """

    def __init__(self, policy: Policy, meter: SessionMeter) -> None:
        self.name, self._policy, self._meter = policy.name, policy, meter

    def open(
        self,
        rollout_id: str,
        tools: list[dict[str, Any]],
        sampling: Sampling,
        on_delta: OnDelta | None = None,
        bounds: Bounds | None = None,
    ) -> AbstractAsyncContextManager[Session]:
        bounds = replace(bounds or Bounds(), meter=self._meter)
        return self._policy.open(rollout_id, tools, sampling, on_delta, bounds)


def metered(policy: Policy, home: str | Path, session_id: str) -> Policy:
    """The policy with the meter that the settings ask for; one that is no endpoint stays as it is."""
    from rl_cli.core.settings import load_settings

    endpoint = getattr(policy, "endpoint", None)
    if endpoint is None:
        return policy
    return MeteredPolicy(policy, SessionMeter.open(home, load_settings(), session_id, endpoint.base_url))
