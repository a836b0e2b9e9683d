"""Who writes the summaries: a model by its name, with its window and the one who pays for its requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from environments.policies.base import Meter, Policy
from rl_cli.core.errors import BadUsage
from rl_cli.data.compression.extractive import EXTRACTIVE


@dataclass(frozen=True)
class Writer:
    """A model that is asked for summaries."""

    policy: Policy
    meter: Meter | None
    """Who pays; None: requests cost nothing."""
    window: int
    """Of the model, in tokens."""


def writer_of(
    name: str, session: str, base_url: str | None = None, on_warning: Callable[[str], None] = print
) -> Writer | None:
    """The writer of this name; None for extracts.

    Args:
        name: `provider/name`, or `extractive`.
        session: What its requests are booked under.
        base_url: Where it is, if not where its provider is.
        on_warning: Told when a budget is nearly spent.

    Raises:
        BadUsage: There is no such model, or it has no address.
    """
    from rl_cli.agent.models import DEFAULT_WINDOW, OPERATOR, resolve_policy, window_of
    from rl_cli.core.settings import ensure_home, load_settings
    from rl_cli.spending.meter import SessionMeter

    if name == EXTRACTIVE:
        if base_url:
            raise BadUsage("extractive has no address", "leave out --base-url, or name a model")
        return None
    if name == OPERATOR:
        raise BadUsage(f"{OPERATOR} writes no summaries", f"name a model as provider/name, or {EXTRACTIVE}")
    settings = load_settings()
    policy = resolve_policy(name, base_url, settings)
    endpoint = getattr(policy, "endpoint", None)
    if endpoint is None:
        return Writer(policy, None, DEFAULT_WINDOW)
    meter = SessionMeter.open(ensure_home(), settings, session, endpoint.base_url, on_warning)
    return Writer(policy, meter, window_of(policy.name, endpoint))
