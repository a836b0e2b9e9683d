"""What servers compatible with the Messages API leave in the text: `<think>` blocks, and calls.

Anthropic's own API never does, so nothing is looked for in what it sends.
"""

from __future__ import annotations

from collections.abc import Collection

from environments.policies.base import Completion, Delta, FinishReason, OnDelta, TextDelta
from environments.policies.endpoints.call_text import calls_in
from environments.policies.endpoints.think_tags import TagSplitter, split_reasoning
from rl_cli.core.messages import ToolCall, tool_call


class TextReader:
    """Stands between one message's pieces and whoever is shown them, and reads the whole at the end.

    Args:
        offered: Names of the tools that were offered; without any, calls in text stay text.
    """

    def __init__(self, on_delta: OnDelta | None, offered: Collection[str]) -> None:
        self._show = on_delta or (lambda delta: None)
        self._offered = offered
        self._splitter = TagSplitter(hide_calls=bool(offered))

    def show(self, delta: Delta) -> None:
        """Passes a piece on, as what it is."""
        for piece in self._splitter.feed(delta.text) if isinstance(delta, TextDelta) else [delta]:
            self._show(piece)

    def read(self, completion: Completion, taken: Collection[str]) -> Completion:
        """The completion with what its text held in the right places; `taken` ids are not used again."""
        message = completion.message
        reasoning, content = split_reasoning(message["content"] or "")
        if reasoning:
            message["reasoning"] = "\n\n".join(filter(None, [message.get("reasoning"), reasoning]))
        message["content"] = content or None
        found: list[ToolCall] = []
        if content and self._offered and not message.get("tool_calls"):
            parsed = calls_in(content, self._offered)
            for call in parsed.calls:
                call_id = f"call_{len(taken) + len(found)}"
                while call_id in taken:
                    call_id += "_"
                found.append(tool_call(call_id, call.name, call.arguments))
            completion.call_errors += [
                f"at character {error.position}: {error.reason}" for error in parsed.errors
            ]
            message["content"] = parsed.content or None
        if found:
            message["tool_calls"] = found
            if completion.finish_reason is FinishReason.STOP:
                completion.finish_reason = FinishReason.TOOL_CALLS
        for piece in self._splitter.rest(bool(found)):
            self._show(piece)
        return completion
