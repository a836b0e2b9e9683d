"""Splits streamed content into what is for the reader, reasoning in `<think>` tags, and calls in text.

Everything is passed on at once, but for the few characters that may be the beginning of a tag.
"""

from __future__ import annotations

from collections.abc import Iterator

from environments.parsers.hermes import END_THINK, THINK
from environments.parsers.hermes import OPEN as TOOL_CALL
from environments.policies.base import ReasoningDelta, TextDelta


class TagSplitter:
    """Fed with content as it comes.

    Args:
        hide_calls: Keep back what follows `<tool_call>`: it is shown as a call, not as text.
    """

    def __init__(self, hide_calls: bool) -> None:
        self._hide_calls = hide_calls
        self._state = "start"
        self._held = ""

    def feed(self, text: str) -> Iterator[TextDelta | ReasoningDelta]:
        self._held += text
        if self._state == "start":
            begun = self._held.lstrip()
            if THINK.startswith(begun) and len(begun) < len(THINK):
                return
            self._state = "text"
            if begun.startswith(THINK):
                self._state, self._held = "thinking", begun[len(THINK) :]
        if self._state == "thinking":
            inside, tag, after = self._until(END_THINK)
            if inside:
                yield ReasoningDelta(inside)
            if not tag:
                return
            self._state, self._held = "after thinking", after
        if self._state == "after thinking":  # the empty lines that follow belong to nobody
            self._held = self._held.lstrip()
            if not self._held:
                return
            self._state = "text"
        if self._state == "text":
            shown, tag, after = self._until(TOOL_CALL) if self._hide_calls else (self._held, "", "")
            if not self._hide_calls:
                self._held = ""
            if shown:
                yield TextDelta(shown)
            if tag:
                self._state, self._held = "call", tag + after

    def rest(self, calls_found: bool) -> Iterator[TextDelta | ReasoningDelta]:
        """What was kept back, once the content is complete; not what turned out to be calls."""
        if self._held and not (self._state == "call" and calls_found):
            yield ReasoningDelta(self._held) if self._state == "thinking" else TextDelta(self._held)
        self._held = ""

    def _until(self, tag: str) -> tuple[str, str, str]:
        """What stands before `tag`, the tag (empty where it has not come), what stands after it.

        The end that may be the tag's beginning stays held.
        """
        before, found, after = self._held.partition(tag)
        if found:
            return before, found, after
        kept = next((n for n in range(len(tag) - 1, 0, -1) if self._held.endswith(tag[:n])), 0)
        cut = len(self._held) - kept
        before, self._held = self._held[:cut], self._held[cut:]
        return before, "", ""


def split_reasoning(content: str) -> tuple[str | None, str]:
    """Reasoning and the rest of a complete content.

    A template may have opened the block in the prompt; then only the closing tag is there, at the beginning
    or the end of a line.
    """
    begun = content.lstrip()
    if begun.startswith(THINK):
        inside, _, rest = begun[len(THINK) :].partition(END_THINK)
        return inside.strip() or None, rest.lstrip()
    inside, tag, rest = content.partition(END_THINK)
    alone = not inside.strip() or inside.endswith("\n") or rest.startswith("\n")
    if tag and THINK not in inside and alone:
        return inside.strip() or None, rest.lstrip()
    return None, content
