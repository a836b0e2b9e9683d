"""The messages of a conversation, read as turns: a request, the calls made for it, and their results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from environments.policies.operator.steps import Result, Unreadable
from rl_cli.core.messages import Message

STARTS = ("rl_start_training", "rl_resume_training")
BATCH_STARTS = ("data_generate", "data_compress")


@dataclass
class Step:
    """One tool call. `content` is None until its result is there."""

    name: str
    arguments: dict[str, Any]
    content: str | None = None

    def result(self) -> Result | None:
        """The result if it can be read and is ok."""
        result = self._read()
        return result if result and result.ok else None

    def error_kind(self) -> str:
        """The type of the error that the result is; "" where it is none."""
        result = self._read()
        return result.kind if result else ""

    def _read(self) -> Result | None:
        try:
            return None if self.content is None else Result(self.name, self.content)
        except Unreadable:
            return None


@dataclass
class Turn:
    request: str
    steps: list[Step] = field(default_factory=list)

    def called(self, name: str) -> bool:
        return any(step.name == name for step in self.steps)


@dataclass
class Conversation:
    """Never empty: where nobody asked anything, the request is ""."""

    turns: list[Turn]
    calls: int
    """Tool calls in the whole conversation."""

    @property
    def now(self) -> Turn:
        return self.turns[-1]

    @property
    def earlier(self) -> list[Turn]:
        return self.turns[:-1]

    def last_environment(self) -> tuple[str, bool] | None:
        """The environment that earlier turns were about, and whether it is the selected one."""
        for turn in reversed(self.earlier):
            for step in reversed(turn.steps):
                key = {"rl_select_environment": "environment", "rl_describe_environment": "name"}.get(
                    step.name
                )
                if key and (result := step.result()):
                    name = result.data.get(key)
                    if isinstance(name, str):
                        return name, key == "environment"
        return None

    def start_is_unknown(self) -> bool:
        """An earlier turn was cut off while it started a run: nobody knows whether that run exists."""
        for turn in reversed(self.earlier):
            for step in reversed(turn.steps):
                if step.name == "rl_start_training":
                    return step.error_kind() == "result_unknown"
        return False

    def own_run(self) -> str | None:
        """The run that this conversation started or resumed last."""
        for turn in reversed(self.turns):
            for step in reversed(turn.steps):
                if step.name in STARTS and (result := step.result()):
                    run_id = result.data.get("run_id")
                    return run_id if isinstance(run_id, str) else None
        return None

    def is_about_batch(self) -> bool:
        """Whether what this conversation started last is a batch of training data rather than a run."""
        called = [step.name for turn in self.turns for step in turn.steps]
        newest = next((name for name in reversed(called) if name in (*STARTS, *BATCH_STARTS)), None)
        return newest in BATCH_STARTS

    def tried_to_start(self) -> bool:
        return any(turn.called("rl_start_training") for turn in self.turns)

    def last_changes(self) -> dict[str, Any]:
        """What earlier turns had changed in the draft, as the config tool last reported it."""
        for turn in reversed(self.earlier):
            for step in reversed(turn.steps):
                if step.name == "rl_get_current_config" and (result := step.result()):
                    return result.section("changed")
        return {}


def read(messages: Sequence[Message]) -> Conversation:
    """Reads the turns; a result whose call is unknown is left out."""
    turns: list[Turn] = []
    waiting: dict[str, Step] = {}
    calls = 0
    for message in messages:
        role = message.get("role")
        if role == "user":
            turns.append(Turn(plain(message.get("content"))))
        elif role == "assistant":
            for call in message.get("tool_calls") or []:
                calls += 1
                step = Step(call["function"]["name"], _arguments(call["function"].get("arguments")))
                waiting[call["id"]] = step
                if turns:
                    turns[-1].steps.append(step)
        elif role == "tool":
            answered = waiting.pop(message.get("tool_call_id", ""), None)
            if answered:
                answered.content = plain(message.get("content"))
    return Conversation(turns or [Turn("")], calls)


def plain(content: object) -> str:
    """The text of a message's content, which may be a string, None, or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return ""


def _arguments(written: object) -> dict[str, Any]:
    try:
        value = json.loads(written) if isinstance(written, str) and written else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
