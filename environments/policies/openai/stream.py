"""Chunks of a chat completion -> the assistant message. Pure; a whole body counts as one chunk.

Chunks are plain JSON values, as servers sent them: nothing in them is taken for granted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from environments.policies.base import FinishReason, ReasoningDelta, TextDelta, Usage
from environments.policies.endpoints.answer_limit import MOST_PARTS, too_many_parts
from environments.policies.endpoints.errors import CutStream, StreamedError
from environments.policies.endpoints.served_text import ServedText
from environments.policies.endpoints.token_estimate import TextCount
from environments.policies.openai.call_slots import CallSlots, is_cut, is_object
from environments.policies.openai.parts import (
    PairedText,
    count_of,
    detail_text,
    merged_details,
    texts_of,
    usage_of,
)
from environments.policies.turn_text import call_errors
from rl_cli.core.json_text import repair_surrogates
from rl_cli.core.messages import Message, ToolCall, assistant

FINISH = {
    "stop": FinishReason.STOP,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "max_output_tokens": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
    "safety": FinishReason.CONTENT_FILTER,
}
"""Every other reason is STOP, or TOOL_CALLS where there are calls."""
BROKEN = frozenset({"error", "abort", "aborted", "cancelled", "insufficient_system_resource"})
"""Reasons with which servers end an answer that they could not complete."""


@dataclass(frozen=True)
class Assembled:
    """A complete answer."""

    message: Message
    finish_reason: FinishReason
    usage: Usage | None
    """None where the server counted nothing."""
    call_errors: list[str] = field(default_factory=list)
    received_tokens: int = 0
    """Estimated, of all that came, what the message leaves out included."""


class Assembly:
    """Takes the chunks of one answer.

    Args:
        model: Who answers; tells in which form calls may stand in the text.
        tools: The tools that were offered; without any, calls in text stay text.
        taken: Ids of calls that the conversation has already.
        max_tokens: The limit that was sent, if one was.
    """

    def __init__(
        self,
        model: str,
        tools: Sequence[dict[str, Any]] = (),
        taken: Collection[str] = (),
        max_tokens: int | None = None,
    ) -> None:
        self._taken, self._max_tokens = taken, max_tokens
        self.count = TextCount()
        """All that has been received of the answer, to guess its tokens from."""
        self._slots = CallSlots(frozenset(tool["function"]["name"] for tool in tools), self.count)
        self._served = ServedText(model, tools)
        self._text, self._thought = PairedText(), PairedText()
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._details: list[Any] = []
        self._finish: str | None = None
        self._usage: dict[str, Any] = {}
        self._done = False

    @property
    def is_finished(self) -> bool:
        """Whether the server said that the answer is complete."""
        return self._done or (self._finish is not None and self._finish not in BROKEN)

    def cut(self) -> None:
        """The rest is not taken: it is longer than it may be. What the server counted so far is not all."""
        self._finish, self._usage = "length", {}

    def done(self) -> None:
        """The stream's [DONE] came."""
        self._done = True

    def feed(self, chunk: Any) -> Iterator[TextDelta | ReasoningDelta]:
        """Takes a chunk, or a whole body. Yields what is to be shown of it.

        Raises:
            StreamedError: The server reports an error instead.
        """
        if not isinstance(chunk, dict):
            return
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        choice = choice if isinstance(choice, dict) else {}
        if error := chunk.get("error") or choice.get("error"):
            raise StreamedError({"error": error})
        self._take_usage(chunk)
        if choice.get("index") not in (None, 0):
            return
        whole = choice.get("message")
        if isinstance(whole, dict) and not choice.get("delta"):
            if not self.count.characters:  # some repeat the whole message at the end
                yield from self._take_delta(whole, listed=True)
        elif isinstance(delta := choice.get("delta"), dict):
            yield from self._take_delta(delta, listed=False)
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self._finish = reason.casefold()

    def result(self) -> Assembled:
        """The message, once there are no more chunks.

        Raises:
            CutStream: The answer is not complete, or there is none.
        """
        self._content.append(self._text.rest())
        parsed = self._served.read("".join(self._content), has_calls=bool(self._slots.begun))
        for i, found in enumerate(parsed.tool_calls):
            function = {"name": found.name, "arguments": found.arguments}
            self._slots.feed({"id": found.id, "function": function}, i)
        said = ("".join(self._reasoning) + self._thought.rest()).strip()
        thought = "\n\n".join(dict.fromkeys(filter(None, [said, parsed.reasoning])))
        content = parsed.content or ""
        content = content if content.strip() else "".join(self._refusal)
        calls, errors = self._slots.calls(self._taken), call_errors(parsed)
        finish = self._finish_reason(calls, content)
        kept, dropped = _usable(calls, finish)
        message = assistant(content or None, kept)
        if thought:
            message["reasoning"] = thought
        if state := self._state(calls):
            message["provider_state"] = {"openai": state}
        if finish is FinishReason.TOOL_CALLS and not kept:
            finish = FinishReason.STOP
        return Assembled(message, finish, usage_of(self._usage), errors + dropped, self.count.tokens)

    def rest(self) -> Iterator[TextDelta | ReasoningDelta]:
        """What was not shown yet, because it might have been calls. Ask for it after the result."""
        yield from self._served.show(self._content[-1])
        yield from self._served.rest()

    def _take_delta(self, delta: dict[str, Any], listed: bool) -> Iterator[TextDelta | ReasoningDelta]:
        text, thought = texts_of(delta.get("content"))
        spoken = (delta.get(name) for name in ("reasoning_content", "reasoning", "thinking"))
        thought = next((s for s in spoken if isinstance(s, str) and s), "") or thought
        if isinstance(details := delta.get("reasoning_details"), list):
            self._details += details
            thought = thought or "".join(detail_text(detail) for detail in details)
        if thought := self._thought.feed(thought):
            self._reasoning.append(thought)
            self.count.add(thought)
            yield ReasoningDelta(thought)
        if text := self._text.feed(text):
            self._content.append(text)
            self.count.add(text)
            yield from self._served.show(text)
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._refusal.append(repair_surrogates(refusal))
            self.count.add(refusal)
            yield TextDelta(self._refusal[-1])
        calls = delta.get("tool_calls")
        calls = [calls] if isinstance(calls, dict) else calls if isinstance(calls, list) else []
        if len(calls) > MOST_PARTS:
            raise too_many_parts()
        for i, piece in enumerate(calls):
            self._slots.feed(piece, i if listed else None)
        if isinstance(legacy := delta.get("function_call"), dict) and not calls:
            self._slots.feed({"function": legacy}, 0)

    def _take_usage(self, chunk: dict[str, Any]) -> None:
        groq = chunk.get("x_groq")
        usage = chunk.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None)
        if isinstance(usage, dict):
            self._usage = usage
            self._done = self._done or not chunk.get("choices")  # it comes last, unless in every chunk

    def _finish_reason(self, calls: list[ToolCall], content: str) -> FinishReason:
        if self._finish in BROKEN:
            raise CutStream(f"it ended with '{self._finish}'")
        cut_call = any(is_cut(call["function"]["arguments"]) for call in calls)
        if self._finish is None and (not self._done or not (calls or content) or cut_call):
            raise CutStream("it ended too early" if self.count.characters else "it was empty")
        finish = FINISH.get(self._finish or "stop", FinishReason.STOP)
        if finish in (FinishReason.LENGTH, FinishReason.CONTENT_FILTER):
            return finish
        used = count_of(self._usage.get("completion_tokens"))
        if cut_call and self._max_tokens is not None and used >= self._max_tokens:
            return FinishReason.LENGTH  # whatever the server calls it
        return FinishReason.TOOL_CALLS if calls else FinishReason.STOP

    def _state(self, calls: list[ToolCall]) -> dict[str, Any]:
        """What must go back to the endpoint as it came."""
        state: dict[str, Any] = {}
        if self._details:
            state["reasoning_details"] = merged_details(self._details)
        extras = zip(calls, self._slots.begun, strict=True)
        if found := {call["id"]: slot.extra for call, slot in extras if slot.extra}:
            state["extra_content"] = found
        return state


def _usable(calls: list[ToolCall], finish: FinishReason) -> tuple[list[ToolCall], list[str]]:
    """The calls that may be run; and a reason for each of the others."""
    kept, reasons = [], []
    for i, call in enumerate(calls):
        arguments = call["function"]["arguments"].strip()
        whole = is_object(arguments) or (arguments in ("", "null") and i < len(calls) - 1)
        if finish is FinishReason.LENGTH and not whole:
            reasons.append(
                f"the call of {call['function']['name'] or 'a tool'} was cut off by the token limit"
            )
        elif not call["function"]["name"]:
            reasons.append("a call without a tool's name")
        else:
            kept.append(call)
    return kept, reasons
