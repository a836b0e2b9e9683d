"""What servers compatible with the Messages API leave in the text: `<think>` blocks, and calls.

Anthropic's own API never does, so nothing is looked for in what it sends.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from environments.policies.base import Completion, Delta, FinishReason, OnDelta, TextDelta
from environments.policies.call_ids import fresh_id
from environments.policies.endpoints.served_text import ServedText
from environments.policies.turn_text import call_errors
from rl_cli.core.messages import ToolCall, tool_call


class TextReader:
    """Stands between one message's pieces and whoever is shown them, and reads the whole at the end.

    Args:
        model: Who answers.
        tools: The tools that were offered; without any, calls in text stay text.
    """

    def __init__(self, on_delta: OnDelta | None, model: str, tools: Sequence[dict[str, Any]]) -> None:
        self._show = on_delta or (lambda delta: None)
        self._served = ServedText(model, tools)

    def show(self, delta: Delta) -> None:
        """Passes a piece on, as what it is."""
        for piece in self._served.show(delta.text) if isinstance(delta, TextDelta) else [delta]:
            self._show(piece)

    def read(self, completion: Completion, taken: Collection[str]) -> Completion:
        """The completion with what its text held in the right places; `taken` ids are not used again."""
        message = completion.message
        parsed = self._served.read(message["content"] or "", bool(message.get("tool_calls")))
        if parsed.reasoning:
            thoughts = filter(None, [message.get("reasoning"), parsed.reasoning])
            message["reasoning"] = "\n\n".join(dict.fromkeys(thoughts))
        message["content"] = parsed.content or None
        completion.call_errors += call_errors(parsed)
        found: list[ToolCall] = []
        used = set(taken)
        for call in parsed.tool_calls:
            found.append(tool_call(fresh_id(call.id, used), call.name, call.arguments))
            used.add(found[-1]["id"])
        if found:
            message["tool_calls"] = found
            if completion.finish_reason is FinishReason.STOP:
                completion.finish_reason = FinishReason.TOOL_CALLS
        for piece in self._served.rest():
            self._show(piece)
        return completion
