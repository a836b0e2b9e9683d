"""`scripted/FILE`: a policy that plays replies from a YAML file, for tests, demos and dry runs.

The file is a list. At each turn the first reply that has not been used and whose `when` holds is played:

    - when: {contains: train}            # every condition must hold; without `when` a reply always fits
      text: I start the run.
      tool_calls:
        - {name: rl_start_training, arguments: {}}
    - when: {last_tool: rl_start_training, ok: true}
      text: "Started {{ rl_start_training.run_id }}."

Conditions look at the last message: `contains` (text in it, case ignored), `last_tool` (the tool whose result
it is), `ok` (whether that result says so). `repeat: true` lets a reply be used again. `{{ TOOL.path.to.value
}}` is the value in the last result of TOOL (numbers index lists); a text that is nothing else keeps the
value's type.

Which replies were used travels on the messages (`provider_state`), so a session opened with an earlier
conversation goes on in the script where that left off.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from environments.policies.base import (
    Bounds,
    Completion,
    FinishReason,
    OnDelta,
    PolicyError,
    Sampling,
    TextDelta,
    Usage,
)
from rl_cli.core.cuts import head
from rl_cli.core.errors import BadUsage
from rl_cli.core.messages import Message, assistant, tool_call

_SLOT = re.compile(r"\{\{\s*([A-Za-z_][\w.\-]*)\s*\}\}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class When(_Strict):
    last_tool: str | None = None
    contains: str | None = None
    ok: bool | None = None


class ScriptedCall(_Strict):
    name: str
    arguments: dict[str, Any] | str = {}
    """A string is passed on as it is, so that a script can play a model that writes bad JSON."""


class Reply(_Strict):
    text: str | None = None
    tool_calls: list[ScriptedCall] = []
    when: When = When()
    repeat: bool = False


class ScriptedPolicy:
    """Every session plays the script from the start, or goes on where the messages it is given left off."""

    def __init__(self, path: Path | str) -> None:
        """Raises BadUsage where the file cannot be read or is not a list of replies."""
        self.name = f"scripted/{path}"
        try:
            self.replies = TypeAdapter(list[Reply]).validate_python(
                yaml.safe_load(Path(path).read_text("utf-8"))
            )
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise BadUsage(f"cannot read the script {path}: {error}") from error
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the file"
            raise BadUsage(f"{path} is not a list of replies: {where}: {first['msg']}") from error

    @asynccontextmanager
    async def open(
        self,
        rollout_id: str,
        tools: list[dict[str, Any]],
        sampling: Sampling,
        on_delta: OnDelta | None = None,
        bounds: Bounds | None = None,
    ) -> AsyncIterator[ScriptedSession]:
        yield ScriptedSession(self.name, self.replies, on_delta)


class ScriptedSession:
    def __init__(self, name: str, replies: list[Reply], on_delta: OnDelta | None) -> None:
        self._name = name
        self._replies = replies
        self._used: set[int] = set()
        self._messages: list[Message] = []
        self._on_delta = on_delta

    async def complete(self, new_messages: list[Message]) -> Completion:
        """Raises PolicyError where no reply fits or a slot cannot be filled."""
        messages = self._messages + new_messages
        last = messages[-1] if messages else {"role": "user", "content": ""}
        used = self._used | _used_before(new_messages, self._name)
        left = (i for i, reply in enumerate(self._replies) if i not in used and _holds(reply.when, last))
        chosen = next(left, None)
        if chosen is None:
            raise PolicyError(f"the script has no reply left for: {head(last['content'] or '', 200)}")
        reply = self._replies[chosen]
        results = {m["name"]: m["content"] for m in messages if m["role"] == "tool" and "name" in m}
        text = _fill(reply.text, results) if reply.text is not None else None
        turn = sum(m["role"] == "assistant" for m in messages)
        calls = [
            tool_call(f"call_{turn}_{i}", call.name, _arguments(_fill(call.arguments, results)))
            for i, call in enumerate(reply.tool_calls)
        ]
        message = assistant(text if text is None else str(text), calls)
        self._used = used if reply.repeat else used | {chosen}
        message["provider_state"] = {"scripted": {"script": self._name, "used": sorted(self._used)}}
        self._messages = [*messages, message]
        if self._on_delta and message["content"]:
            self._on_delta(TextDelta(message["content"]))
        finish = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
        return Completion(message, finish, Usage(requests=1))


def _used_before(messages: list[Message], script: str) -> set[int]:
    """The replies that were used in a conversation which goes on here."""
    states = (m.get("provider_state", {}).get("scripted", {}) for m in messages)
    return {i for state in states if state.get("script") == script for i in state.get("used", [])}


def _holds(when: When, last: Message) -> bool:
    text, is_tool = last["content"] or "", last["role"] == "tool"
    return (
        (when.contains is None or when.contains.casefold() in text.casefold())
        and (when.last_tool is None or (is_tool and last.get("name") == when.last_tool))
        and (when.ok is None or (is_tool and _read(text).get("ok") is when.ok))
    )


def _fill(value: Any, results: dict[str, str | None]) -> Any:
    """`value` with every slot in its texts replaced."""
    if isinstance(value, dict):
        return {k: _fill(v, results) for k, v in value.items()}
    if isinstance(value, list):
        return [_fill(v, results) for v in value]
    if not isinstance(value, str):
        return value
    if whole := _SLOT.fullmatch(value.strip()):
        return _look_up(whole[1], results)
    return _SLOT.sub(lambda m: _as_text(_look_up(m[1], results)), value)


def _look_up(path: str, results: dict[str, str | None]) -> Any:
    tool, *keys = path.split(".")
    if tool not in results:
        raise PolicyError(f"the script refers to {path}, but {tool} has not been called")
    value: Any = _read(results[tool] or "")
    for key in keys:
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise PolicyError(
                f"the script refers to {path}, but the last result of {tool} has no such value"
            ) from error
    return value


def _read(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _arguments(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
