"""The conversation as JSON, one event a line, where text is not wanted."""

from __future__ import annotations

import json
from typing import Any, TextIO

from environments.agent_loop import AssistantMessage, LoopEvent, ToolFinished, ToolStarted
from environments.policies.base import Delta, ReasoningDelta, Retrying, TextDelta
from rl_cli.cli.stream_display import TextDisplay
from rl_cli.core.json_text import to_json
from rl_cli.core.printable import printable_json
from rl_cli.core.redaction import StreamRedactor, redact

__all__ = ["Display", "JsonDisplay", "TextDisplay", "choose_display"]


class JsonDisplay:
    """Kinds: notice, delta, message, call, result, progress, retry, end.

    A `delta` has `text` or `reasoning`, a piece of the message that follows; after a `retry` the pieces start
    anew. The last line is an `end`, unless the command fails before it has begun.
    """

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.model = ""
        self._redactors = {what: StreamRedactor(at_once=True) for what in ("text", "reasoning")}

    def notice(self, text: str) -> None:
        self._write({"kind": "notice", "text": text})

    def aside(self, text: str) -> None:
        self.notice(text)

    def on_event(self, event: LoopEvent) -> None:
        if isinstance(event, AssistantMessage):
            self._flush()
            shown = {key: value for key, value in event.message.items() if key != "provider_state"}
            self._write({"kind": "message", "message": shown})
        elif isinstance(event, ToolStarted):
            self._write({"kind": "call", "call": event.call})
        elif isinstance(event, ToolFinished):
            record = event.record
            self._write(
                {
                    "kind": "result",
                    "id": record.id,
                    "name": record.name,
                    "ok": record.ok,
                    "seconds": round(record.seconds, 3),
                    "result": json.loads(record.result),
                }
            )

    def on_delta(self, delta: Delta) -> None:
        if isinstance(delta, TextDelta):
            self._piece("text", self._redactors["text"].feed(delta.text))
        elif isinstance(delta, ReasoningDelta):
            self._piece("reasoning", self._redactors["reasoning"].feed(delta.text))
        elif isinstance(delta, Retrying):
            self._flush()
            self._write({"kind": "retry", "reason": delta.reason, "wait_seconds": delta.wait_seconds})

    def on_progress(self, event: dict[str, Any]) -> None:
        self._write({**event, "kind": "progress", "progress": event.get("kind")})

    def end(self, **fields: Any) -> None:
        """The last line."""
        self._flush()
        self._write({"kind": "end", **fields})

    def tick(self) -> None:
        pass

    def pause(self) -> None:
        pass

    def pause_to_ask(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def end_turn(self) -> None:
        self._flush()

    def _piece(self, what: str, piece: str) -> None:
        if piece:
            self._write({"kind": "delta", what: piece})

    def _flush(self) -> None:
        for what, redactor in self._redactors.items():
            self._piece(what, redactor.flush())

    def _write(self, row: dict[str, Any]) -> None:
        self.out.write(printable_json(to_json(redact(row))) + "\n")
        self.out.flush()


Display = TextDisplay | JsonDisplay


def choose_display(as_json: bool) -> Display:
    import sys

    return JsonDisplay(sys.stdout) if as_json else TextDisplay()
