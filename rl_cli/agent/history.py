"""The conversation that a session's events tell, repaired so that a policy can go on from it.

Every call has exactly one result, directly after its message and in call order, whatever a crash left out.
Results without a call, lines that are no events and kinds that are not known are passed over.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from rl_cli.agent.events import is_json_object, sound_event
from rl_cli.core.messages import Message, ToolCall, tool_result, user

UNKNOWN = json.dumps(
    {
        "ok": False,
        "error": {
            "type": "result_unknown",
            "message": "the result of this call is not known: the program ended before it was recorded. "
            "Check the state (rl_list_runs, rl_check_status) before repeating it.",
        },
    }
)
"""The result of a call that has none."""


@dataclass
class Entry:
    """A message of the person or the model, with a result for each call in it."""

    message: Message
    results: list[str | None] = field(default_factory=list)


class History:
    """What the events so far amount to. Feeding it the same events again gives the same messages."""

    def __init__(self) -> None:
        self.model = ""
        self.title = ""
        """The first request."""
        self.turns = 0
        """Requests of the person, those that were summarised included."""
        self.unfinished = False
        """The last turn has no end: it was cut off, or goes on."""
        self.stop = ""
        """How the last turn ended; "" where it has no end."""
        self.why = ""
        """The reason that goes with it, if there is one."""
        self.request = ""
        """The person's last."""
        self.words = ""
        """What the model said last in that turn, complete or not."""
        self.system = ""
        """The system prompt that was recorded last."""
        self.state: dict[str, Any] = {}
        """The session's own (CallContext.state), as it was recorded last."""
        self.summary: str | None = None
        """What stands for everything before the messages."""
        self.digest: dict[str, Any] = {}
        """What the summary was made from by our own records; see compaction.py."""
        self._entries: list[Entry] = []

    def apply(self, event: dict[str, Any]) -> None:
        """Takes in one event of a session file, whatever somebody has made of it."""
        sound = sound_event(event)
        if sound is not None:
            self._apply(sound)

    def as_events(self) -> list[dict[str, Any]]:
        """Events that give the same messages and state in a file that has none."""
        told: list[dict[str, Any]] = [{"kind": "system", "content": self.system}] if self.system else []
        if self.state:
            told.append({"kind": "state", "state": self.state})
        if self.summary is not None:
            told.append({"kind": "compaction", "summary": self.summary, "digest": self.digest, "kept": []})
        for entry in self._entries:
            told.append({"kind": "message", "message": entry.message})
            calls = entry.message.get("tool_calls", [])
            told += [
                {
                    "kind": "result",
                    "call_id": call["id"],
                    "name": call["function"]["name"],
                    "content": content,
                }
                for call, content in zip(calls, entry.results, strict=True)
                if content is not None
            ]
        return told

    @property
    def length(self) -> int:
        """Messages of the person and the model since the last summary."""
        return len(self._entries)

    def messages(self) -> list[Message]:
        """The conversation without the system prompt: the summary, if there is one, and what followed."""
        return [*([] if self.summary is None else [user(self.summary)]), *self.since_summary()]

    def since_summary(self) -> list[Message]:
        """The messages that no summary stands for."""
        messages: list[Message] = []
        seen: set[str] = set()
        for entry in self._entries:
            calls = entry.message.get("tool_calls", [])
            if not calls:
                messages.append(entry.message)
                continue
            named = [_with_unique_id(call, seen) for call in calls]
            messages.append({**entry.message, "tool_calls": named} if named != calls else entry.message)
            messages += [
                tool_result(call, UNKNOWN if content is None else content)
                for call, content in zip(named, entry.results, strict=True)
            ]
        return messages

    def unanswered(self) -> list[ToolCall]:
        """The calls of the last message that have no result yet."""
        last = next((e for e in reversed(self._entries) if e.results), None)
        if last is None:
            return []
        calls = last.message["tool_calls"]
        return [call for call, content in zip(calls, last.results, strict=True) if content is None]

    def _apply(self, event: dict[str, Any]) -> None:
        kind = event.get("kind")
        if kind in ("session", "model"):
            self.model = event["model"] or self.model
        elif kind == "system":
            self.system = event["content"]
        elif kind == "message":
            self._who_answers(event)
            self._add(event["message"], by_person=event.get("by") is None)
        elif kind == "result":
            self._answer(event["call_id"], event["content"])
        elif kind == "state":
            self.state = event["state"]
        elif kind == "compaction":
            self.summary = event["summary"] or None
            self.digest = event["digest"]
            self._entries = []
            for message in event["kept"]:
                if message["role"] == "tool":
                    self._answer(message["tool_call_id"], message["content"])
                else:
                    self._add(message, by_person=False)
        elif kind == "partial":
            self.words = event["text"]
        elif kind == "end":
            self.unfinished = False
            self.stop, self.why = event["stop"] or "", event["error"] or ""

    def _who_answers(self, event: dict[str, Any]) -> None:
        """A turn's beginning says it again: a model of this computer is never mistaken for a provider's."""
        model, address = event.get("model"), event.get("base_url")
        self.model = model or self.model
        if address and "base_url" not in self.state:
            self.state = {**self.state, "base_url": address}

    def _add(self, message: Message, by_person: bool) -> None:
        calls = message.get("tool_calls", [])
        if message["role"] == "user" and by_person:
            self.turns += 1
            self.title = self.title or message["content"] or ""
            self.unfinished = True
            self.request, self.words, self.stop, self.why = message["content"] or "", "", "", ""
        elif message["role"] == "assistant":
            self.words = message["content"] or self.words
        self._entries.append(Entry(message, [None] * len(calls)))

    def _answer(self, call_id: str, content: str) -> None:
        """Gives a result to the first open call of the latest message with calls; else drops it."""
        entry = next((e for e in reversed(self._entries) if e.results), None)
        if entry is None or not is_json_object(content):
            return
        for i, call in enumerate(entry.message["tool_calls"]):
            if call["id"] == call_id and entry.results[i] is None:
                entry.results[i] = content
                return


def _with_unique_id(call: ToolCall, seen: set[str]) -> ToolCall:
    name, count = call["id"], 2
    while name in seen:
        name, count = f"{call['id']}_{count}", count + 1
    seen.add(name)
    return call if name == call["id"] else {**call, "id": name}
