"""A conversation in a test: a policy that plays given answers, a few tools, an assistant around them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from environments.policies.base import Completion, FinishReason, Policy, PolicyError, Usage
from rl_cli.agent.assistant import Assistant, TurnResult
from rl_cli.agent.session_file import SessionFile, read_events
from rl_cli.agent.session_store import list_sessions, new_session, open_session
from rl_cli.core.messages import Message, assistant, tool_call
from tools.dispatcher import ApprovalRequest, ToolError, Verdict, tool

TOOLSET = "talk"
STARTED: list[str] = []
"""What `start` was called for."""


@tool(toolset=TOOLSET, risk="spend")
async def start(name: str) -> dict[str, Any]:
    """Starts something that costs money."""
    STARTED.append(name)
    return {"run_id": f"run-{name}", "state": "running"}


@tool(toolset=TOOLSET)
async def status(name: str = "") -> dict[str, Any]:
    """Says how it goes."""
    return {"run": {"id": f"run-{name}", "state": "running"}}


@tool(toolset=TOOLSET)
async def wait_for(name: str, wait: bool = True) -> dict[str, Any]:
    """Waits."""
    return {"why": "time"}


@tool(toolset=TOOLSET)
async def broken(what: str = "") -> None:
    """Fails."""
    raise ToolError("no_such_file", f"there is no {what}")


@tool(toolset=TOOLSET)
async def read_text(path: str) -> dict[str, Any]:
    """The text of a file, whatever bytes it has."""
    return {"text": Path(path).read_bytes().decode("utf-8", "surrogateescape")}


@tool(toolset=TOOLSET)
async def print_as(count: int) -> dict[str, Any]:
    """Many letters."""
    return {"output": "A" * count}


class Playing:
    """Answers with what it is given, in order; remembers each conversation that it was asked to answer."""

    def __init__(self, *answers: Any, name: str = "test/playing") -> None:
        """An answer is a text, a list of calls, a Completion, an exception, or a function of the messages."""
        self.name = name
        self.answers = list(answers)
        self.requests: list[list[Message]] = []
        self.offered: list[int] = []
        self.opened: list[str] = []

    @asynccontextmanager
    async def open(
        self,
        rollout_id: str,
        tools: list[dict[str, Any]],
        sampling: Any,
        on_delta: Any = None,
        bounds: Any = None,
    ) -> AsyncIterator[_Session]:
        self.opened.append(rollout_id)
        yield _Session(self, len(tools))


class _Session:
    def __init__(self, policy: Playing, offered: int) -> None:
        self.policy = policy
        self.offered = offered
        self.messages: list[Message] = []

    async def complete(self, new_messages: list[Message]) -> Completion:
        self.messages = [*self.messages, *new_messages]
        self.policy.requests.append(self.messages)
        self.policy.offered.append(self.offered)
        await asyncio.sleep(0)
        if not self.policy.answers:
            raise PolicyError("nothing left to say")
        answer = self.policy.answers.pop(0)
        if callable(answer) and not isinstance(answer, type):
            answer = answer(self.messages)
        if isinstance(answer, BaseException):
            raise answer
        done = answer if isinstance(answer, Completion) else reply(answer, len(self.messages))
        self.messages = [*self.messages, done.message]
        return done


def calls(*named: tuple[str, dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    return list(named)


def reply(answer: str | list[tuple[str, dict[str, Any]]], number: int) -> Completion:
    if isinstance(answer, str):
        return Completion(assistant(answer), FinishReason.STOP, Usage(requests=1))
    made = [tool_call(f"call_{number}_{i}", name, json.dumps(a)) for i, (name, a) in enumerate(answer)]
    return Completion(assistant(None, made), FinishReason.TOOL_CALLS, Usage(requests=1))


async def allow(request: ApprovalRequest) -> Verdict:
    return Verdict(True)


def talk(
    home: Path, policy: Policy, *requests: str, session: SessionFile | None = None, **fields: Any
) -> list[TurnResult]:
    """One process: opens the newest session, or a new one, and answers the requests."""

    async def main() -> list[TurnResult]:
        given = session or (
            open_session(home, "latest") if list_sessions(home) else new_session(home, policy.name)
        )
        helper = talking(home, policy, given, **fields)
        try:
            return [await helper.turn(request) for request in requests]
        finally:
            await helper.close()

    return asyncio.run(main())


def talking(home: Path, policy: Policy, session: SessionFile, **fields: Any) -> Assistant:
    quiet: Callable[[Any], None] = lambda event: None  # noqa: E731
    return Assistant(
        policy=policy,
        home=home,
        session=session,
        **{
            "approve": allow,
            "on_event": quiet,
            "on_progress": quiet,
            "interrupted": asyncio.Event(),
            "toolsets": (TOOLSET,),
            **fields,
        },
    )


def events(home: Path) -> list[dict[str, Any]]:
    """Of the newest session."""
    return list(read_events(list_sessions(home)[0].path))


def check_well_formed(messages: list[Message]) -> None:
    """Every call has exactly one result, directly after its message, in call order; ids are unique."""
    seen: set[str] = set()
    expected: list[tuple[str, str]] = []
    for message in messages:
        if expected:
            call_id, name = expected.pop(0)
            assert (message["role"], message["tool_call_id"], message["name"]) == ("tool", call_id, name)
            assert isinstance(json.loads(message["content"] or ""), dict)
            continue
        assert message["role"] in ("user", "assistant")
        for call in message.get("tool_calls", []):
            assert call["id"] not in seen
            seen.add(call["id"])
            expected.append((call["id"], call["function"]["name"]))
    assert not expected
