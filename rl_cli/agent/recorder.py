"""Writes what happens in a turn to the session's file, each thing before it is shown or run."""

from __future__ import annotations

from typing import Any

from environments.agent_loop import AssistantMessage, CallRecord, LoopEvent, ToolFinished, ToolStarted
from environments.policies.base import Delta, Retrying, TextDelta
from rl_cli.agent.guards import is_empty
from rl_cli.agent.session_file import SessionFile
from rl_cli.core.json_text import repair_surrogates
from rl_cli.core.messages import Message
from tools.dispatcher import tool_specs


class Recorder:
    """Of one turn."""

    def __init__(self, session: SessionFile, state: dict[str, Any], toolsets: tuple[str, ...]) -> None:
        self._session = session
        self._state = state
        self._risks = {name: spec.risk for name, spec in tool_specs(toolsets).items()}
        self.calls: list[CallRecord] = []
        self.replies = 0
        """Completions, empty ones included."""
        self.text = ""
        """The model's last words."""
        self._streamed: list[str] = []
        """Of a message that is not complete."""

    def __call__(self, event: LoopEvent) -> None:
        if isinstance(event, AssistantMessage):
            self.replies += 1
            self._streamed.clear()
            if not is_empty(event.message):  # endpoints refuse a conversation with empty messages
                self._session.record("message", message=event.message)
                self.text = event.message["content"] or self.text
        elif isinstance(event, ToolStarted):
            risk = self._risks.get(event.call["function"]["name"])
            self._session.record("call", fsync=risk in ("execute", "spend", "leave"), call=event.call)
        elif isinstance(event, ToolFinished):
            record = event.record
            self.calls.append(record)
            self.keep_state()
            self._result(record.id, record.name, record.ok, record.result, seconds=round(record.seconds, 3))

    def on_delta(self, delta: Delta) -> None:
        """A piece of the message that comes next."""
        if isinstance(delta, TextDelta):
            self._streamed.append(delta.text)
        elif isinstance(delta, Retrying):
            self._streamed.clear()

    def cut_off(self) -> None:
        """Records what had been said of a message that will not become complete."""
        if said := "".join(self._streamed).strip():
            self._session.record("partial", text=repair_surrogates(said))
        self._streamed.clear()

    def not_run(self, messages: list[Message]) -> None:
        """Records the results that the loop gave to calls without running them."""
        results = {m["tool_call_id"]: m for m in messages if m["role"] == "tool"}
        for call in self._session.history.unanswered():
            if call["id"] in results:
                self._result(
                    call["id"], call["function"]["name"], False, results[call["id"]]["content"] or ""
                )

    def keep_state(self) -> None:
        """Before the result of the call that changed it: what a result promises is there after a crash."""
        state = dict(self._state)
        if state != self._session.history.state:
            self._session.record("state", state=state)

    def _result(self, call_id: str, name: str, ok: bool, content: str, **more: Any) -> None:
        self._session.record("result", call_id=call_id, name=name, ok=ok, content=content, **more)
