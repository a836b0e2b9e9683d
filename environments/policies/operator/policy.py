"""The built-in operator: a fixed procedure that answers where no language model is configured.

It emits the tool calls that a language model would, and reads their results. It keeps nothing: each answer
follows from the messages alone, so a resumed conversation goes on where it was. Not covered: conversation.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from environments.policies.base import (
    Bounds,
    Completion,
    FinishReason,
    OnDelta,
    Sampling,
    TextDelta,
    Usage,
)
from environments.policies.operator.conversation import Conversation, Turn, read
from environments.policies.operator.failures import failure_text
from environments.policies.operator.procedures import PROCEDURES
from environments.policies.operator.steps import Call, Declined, Procedure, Result, ToolFailed, Unreadable
from environments.policies.operator.understanding import understand
from environments.policies.operator.wording import Voice, visible
from rl_cli.core.messages import Message, assistant, tool_call

NOTICE = "No language model is configured: rl-cli's built-in operator (a fixed procedure) answers."
"""What a person is told, in one line, when the operator answers."""


class OperatorPolicy:
    """The policy `builtin/operator`. Deterministic; uses no tokens and no network."""

    name = "builtin/operator"

    @asynccontextmanager
    async def open(
        self,
        rollout_id: str,
        tools: list[dict[str, Any]],
        sampling: Sampling,
        on_delta: OnDelta | None = None,
        bounds: Bounds | None = None,
    ) -> AsyncIterator[OperatorSession]:
        yield OperatorSession([tool["function"]["name"] for tool in tools], on_delta)


class OperatorSession:
    def __init__(self, offered: list[str], on_delta: OnDelta | None = None) -> None:
        self.offered = offered
        self.on_delta = on_delta
        self.messages: list[Message] = []

    async def complete(self, new_messages: list[Message]) -> Completion:
        self.messages.extend(new_messages)
        step = next_step(self.messages, self.offered)
        message = as_message(step, self.messages)
        self.messages.append(message)
        if self.on_delta and message["content"]:
            self.on_delta(TextDelta(message["content"]))
        reason = FinishReason.TOOL_CALLS if isinstance(step, Call) else FinishReason.STOP
        if isinstance(step, Declined):
            reason = FinishReason.DECLINED
        return Completion(message, reason, Usage())


def answer(messages: Sequence[Message], offered: Sequence[str]) -> Message:
    """The assistant message that follows on `messages`; `offered` are the names of the tools."""
    return as_message(next_step(messages, offered), messages)


def next_step(messages: Sequence[Message], offered: Sequence[str]) -> Call | str:
    """The call or the answer that follows on `messages`."""
    conversation = read(messages)
    say = Voice(conversation.now.request)
    try:
        step = replay(_procedure(conversation, say), conversation.now)
    except Unreadable as error:
        step = say(
            f"I cannot go on: {error.tool} gave a result that I cannot read ({error.what}).",
            f"无法继续：{error.tool} 的结果无法读取（{error.what}）。",
        )
    if isinstance(step, Call) and step.name not in offered:
        return Declined(
            say(
                f"I would need the tool {step.name}, which is not offered here.",
                f"需要工具 {step.name}，但这里没有提供。",
            )
        )
    return step


def as_message(step: Call | str, messages: Sequence[Message]) -> Message:
    if isinstance(step, str):
        return assistant(visible(step))
    call_id = f"call_{read(messages).calls + 1}"
    return assistant(
        visible(step.say), [tool_call(call_id, step.name, json.dumps(step.arguments, ensure_ascii=False))]
    )


def replay(procedure: Procedure, turn: Turn) -> Call | str:
    """Runs `procedure` on the results that `turn` has, to its next call or its answer.

    Calls are matched by name and in order; what another policy called in between is passed over.
    """
    position = 0
    try:
        call = next(procedure)
        while True:
            answered = (i for i in range(position, len(turn.steps)) if turn.steps[i].name == call.name)
            found = next((i for i in answered if turn.steps[i].content is not None), None)
            if found is None:
                return call
            position = found + 1
            call = procedure.send(Result(call.name, turn.steps[found].content or ""))
    except StopIteration as done:
        return done.value


def _procedure(conversation: Conversation, say: Voice) -> Procedure:
    """The procedures of all intents of the request, one after the other."""
    texts = []
    for intent in understand(conversation.now.request):
        try:
            texts.append((yield from PROCEDURES[type(intent)](intent, say, conversation)))
        except ToolFailed as error:
            texts.append(Declined(failure_text(error.result, say)))
            break
    whole = "\n\n".join(texts)
    return Declined(whole) if any(isinstance(text, Declined) for text in texts) else whole
