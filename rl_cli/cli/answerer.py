"""Who answers in a conversation: the model that is asked for, resumed with, or the default."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from rl_cli.core.errors import BadUsage

if TYPE_CHECKING:
    from environments.policies.base import Policy
    from environments.policies.endpoints.endpoint import Endpoint
    from rl_cli.agent.history import History
    from rl_cli.core.settings import Settings

SDKS = {
    "environments.policies.openai.chat": "openai",
    "environments.policies.anthropic.messages": "anthropic",
}
"""Module of a policy -> the package that it will import."""
ADDRESS = "base_url"
"""Key of a session's state: where its model was reached, if a flag said so."""


@dataclass(frozen=True)
class Answerer:
    policy: Policy
    notice: str
    """One line that says who answers."""
    address: str | None = None
    """As the person gave it; None leaves it to the settings."""

    @property
    def who(self) -> str:
        """Just who answers."""
        return f"{self.policy.name} at {self.address}" if self.address else self.policy.name

    @property
    def endpoint(self) -> Endpoint | None:
        """None for those that are part of rl-cli."""
        endpoint: Endpoint | None = getattr(self.policy, "endpoint", None)
        return endpoint

    def window(self) -> int | None:
        """Tokens; None where there is no limit. Imports the list of models."""
        from rl_cli.agent.models import window_of

        return window_of(self.policy.name, self.endpoint) if self.endpoint else None


def choose(
    model: str | None, address: str | None, settings: Settings, history: History | None = None
) -> Answerer:
    """Who answers.

    Args:
        model: As it was asked for now; else the session's, else the settings', else what is served at the
            address, else the default.
        address: The endpoint's, if it is not to come from the settings.
        settings: Those that hold.
        history: Of the session that is gone on with.

    Raises:
        BadUsage: No such model, no key; the session's is not known, or its address is not taken from a file.
    """
    from rl_cli.agent.models import choose_model, resolve_policy

    if model is None and history and not history.model and history.messages():
        raise BadUsage(
            "who answered in this session is not known: its file is damaged",
            "nothing was sent; choose who is to read it: --model provider/name",
        )
    if model is None and history and history.model:
        model = history.model
        address = address or _address_again(history)
    choice = choose_model(model or settings.model)
    if address and not (model or settings.model):
        from rl_cli.cli.served_models import model_at

        choice = choose_model(model_at(address, choice))
    policy = resolve_policy(choice.name, address, settings)
    notice = (
        choice.notice.replace(choice.name, f"{choice.name} at {address}", 1) if address else choice.notice
    )
    return Answerer(policy, notice, address)


def _address_again(history: History) -> str | None:
    """A session's file may name this computer; a key is sent anywhere else only where a person says so."""
    from environments.policies.endpoints.endpoint import Endpoint

    known = history.state.get(ADDRESS)
    if not isinstance(known, str) or Endpoint("", "", known).is_loopback:
        return known if isinstance(known, str) else None
    raise BadUsage(f"this session's model was reached at {known}", f"say so again: --base-url {known}")


class Preparation:
    """What takes a while before the first request, done while the person types.

    A thread of its own: nobody waits for it who leaves at once.
    """

    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer
        self._done: Future[int | None] = Future()
        threading.Thread(target=self._prepare, daemon=True).start()

    async def window(self) -> int | None:
        """The model's window, once everything is prepared."""
        return await asyncio.wrap_future(self._done)

    def _prepare(self) -> None:
        try:
            if sdk := SDKS.get(type(self._answerer.policy).__module__):
                import_module(sdk)
            self._done.set_result(self._answerer.window())
        except BaseException as error:  # it belongs to whoever waits
            self._done.set_exception(error)
