"""A scripted model that judges, and what it was asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from environments.policies.base import Completion, Session
from environments.policies.endpoints.token_estimate import request_tokens
from environments.policies.scripted import ScriptedPolicy
from rl_cli.core.messages import Message


def decides(why: str, decision: str, reason: str = "as it says", message: str = "", **more: Any) -> Any:
    """A reply of a script: what is decided where the digest says so."""
    arguments = {"decision": decision, "reason": reason, "message": message}
    call = {"name": "decide", "arguments": arguments}
    return {"when": {"contains": f"Why now: {why}"}, "tool_calls": [call], **more}


class Counted:
    """A scripted policy that remembers what each of its sessions was sent."""

    def __init__(self, folder: Path, replies: list[Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        script = folder / "script.yaml"
        script.write_text(yaml.safe_dump(replies))
        self._policy = ScriptedPolicy(script)
        self.name = self._policy.name
        self.requests: list[tuple[str, list[Message], int]] = []
        """(session, its messages so far, tokens by our estimate) of each."""

    @asynccontextmanager
    async def open(
        self,
        rollout_id: str,
        tools: list[dict[str, Any]],
        sampling: Any,
        on_delta: Any = None,
        bounds: Any = None,
    ) -> AsyncIterator[Session]:
        async with self._policy.open(rollout_id, tools, sampling, on_delta, bounds) as session:
            yield _Counting(self, rollout_id, tools, session)

    def compact(self) -> list[int]:
        """Tokens of the requests that judged a run."""
        return [tokens for session, _, tokens in self.requests if session.endswith("-judge")]


class _Counting:
    def __init__(self, owner: Counted, name: str, tools: list[dict[str, Any]], session: Session) -> None:
        self._owner, self._name, self._tools, self._session = owner, name, tools, session
        self._messages: list[Message] = []

    async def complete(self, new_messages: list[Message]) -> Completion:
        self._messages = [*self._messages, *new_messages]
        tokens = request_tokens(self._messages, self._tools)
        self._owner.requests.append((self._name, self._messages, tokens))
        completion = await self._session.complete(new_messages)
        self._messages = [*self._messages, completion.message]
        return completion
