"""The policy's session of a conversation: kept open from turn to turn, opened anew where it must be."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from environments.policies.base import Completion, Session
from rl_cli.core.messages import Message

Opener = Callable[[], AbstractAsyncContextManager[Session]]


class PolicySession:
    """Knows which messages of the conversation the policy's session holds already."""

    def __init__(self) -> None:
        self._manager: AbstractAsyncContextManager[Session] | None = None
        self._session: Session | None = None
        self._key: Any = None
        self._held = 0
        self._sound = False
        self.last: Completion | None = None
        """The newest answer."""

    async def take(self, messages: list[Message], key: Any, opener: Opener) -> list[Message]:
        """Makes a session ready to answer `messages`, and returns those that it has not been given.

        Args:
            messages: The whole conversation, system prompt first.
            key: What the session depends on; another one than before opens a new session.
            opener: Opens one.
        """
        new = messages[self._held :]
        if not (self._sound and key == self._key and new and all(m["role"] == "user" for m in new)):
            await self.close()
            self._manager = opener()
            self._session = await self._manager.__aenter__()
            self._key, self._sound, new = key, True, messages
        return new

    async def complete(self, new_messages: list[Message]) -> Completion:
        """As the policy's session; one that failed or was cancelled on the way is not used again."""
        assert self._session
        self._sound = False
        completion = await self._session.complete(new_messages)
        self._held += len(new_messages) + 1
        self._sound = True
        self.last = completion
        return completion

    def spoil(self) -> None:
        """The conversation is no longer what the session was given."""
        self._sound = False

    async def close(self) -> None:
        manager, self._manager, self._session = self._manager, None, None
        self._held, self._sound = 0, False
        if manager is not None:
            await manager.__aexit__(None, None, None)
