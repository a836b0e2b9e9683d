"""Pieces of tool calls -> whole calls, in every way that servers cut them up.

Which call a piece belongs to: its index together with its id; without an id, the last call at that index;
without an index, the call with its id, else the last call. A piece begins another call where its id says so,
or where the call it would belong to is complete and the piece names a tool.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from environments.policies.call_ids import fresh_id
from environments.policies.endpoints.answer_limit import MOST_PARTS, too_many_parts
from environments.policies.endpoints.token_estimate import TextCount
from rl_cli.core.json_text import repair_surrogates
from rl_cli.core.messages import ToolCall, tool_call


@dataclass
class Slot:
    """One call, as far as it has come."""

    index: int | None
    id: str
    name: str = ""
    arguments: str = ""
    extra: Any = None
    """What the endpoint wants back with the call (`extra_content`: Gemini's signatures)."""

    @property
    def is_complete(self) -> bool:
        return self.arguments.rstrip().endswith("}") and is_object(self.arguments)


class CallSlots:
    """Fed with the elements of `tool_calls`, in the order in which they come.

    Args:
        offered: The names of the tools that were offered.
        count: Told of the text of names and arguments.
    """

    def __init__(self, offered: Collection[str], count: TextCount | None = None) -> None:
        self._offered = offered
        self._count = count or TextCount()
        self.slots: list[Slot] = []

    def feed(self, piece: Any, index: int | None = None) -> None:
        """Takes one element; `index` is its place where a whole message lists its calls."""
        if not isinstance(piece, dict):
            return
        function = piece.get("function")
        inner = function if isinstance(function, dict) else piece
        given = inner.get("name")
        name = given if isinstance(given, str) else ""
        arguments = inner.get("arguments")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
        call_id = str(piece["id"]) if isinstance(piece.get("id"), str | int) else ""
        at = _index(piece.get("index")) if index is None else index
        slot = self._slot(at, call_id, name, arguments)
        if slot is None:
            if len(self.slots) >= MOST_PARTS:
                raise too_many_parts()
            slot = Slot(at, call_id)
            self.slots.append(slot)
        slot.index = at if slot.index is None else slot.index
        slot.id = slot.id or call_id
        slot.extra = piece.get("extra_content") or slot.extra
        if name:
            joined = self._joined(slot.name, name) or name
            self._count.add(joined[len(slot.name) :])
            slot.name = joined
        if slot.arguments == "{}" and arguments.lstrip().startswith("{"):
            slot.arguments = ""  # some send that before the arguments
        if not (arguments == slot.arguments and slot.is_complete):  # some repeat the whole at the end
            slot.arguments += arguments
            self._count.add(arguments)

    @property
    def begun(self) -> list[Slot]:
        """Those that hold anything."""
        return [slot for slot in self.slots if slot.name.strip() or slot.arguments.strip()]

    def calls(self, taken: Collection[str]) -> list[ToolCall]:
        """The calls in the order in which they began. Ids that are missing or in `taken` are replaced."""
        used, calls = set(taken), []
        for slot in self.begun:
            call_id = fresh_id(slot.id, used)
            used.add(call_id)
            name, arguments = repair_surrogates(slot.name.strip()), repair_surrogates(slot.arguments)
            calls.append(tool_call(repair_surrogates(call_id), name, arguments))
        return calls

    def _slot(self, index: int | None, call_id: str, name: str, arguments: str) -> Slot | None:
        """The call that a piece belongs to; None where it begins another."""
        here = [slot for slot in self.slots if index is None or slot.index in (None, index)]
        if call_id:
            same = [slot for slot in here if slot.id == call_id]
            here = same or [slot for slot in here if not slot.id]
        if not here or self._begins(here[-1], name, arguments):
            return None
        return here[-1]

    def _begins(self, slot: Slot, name: str, arguments: str) -> bool:
        """Whether a piece that could belong to `slot` is the beginning of another call."""
        if not name:
            return False
        if not slot.name:
            return slot.is_complete and bool(arguments)
        if not slot.arguments.strip():
            return self._joined(slot.name, name) is None
        if name != slot.name:
            return True
        return slot.is_complete and bool(arguments) and arguments != slot.arguments

    def _joined(self, name: str, piece: str) -> str | None:
        """The name with its next piece; None where the piece is the name of another tool."""
        joined = name + piece
        if not name or joined in self._offered:
            return joined
        if piece == name or (piece.startswith(name) and piece in self._offered):
            return piece  # sent again, or as a whole each time
        return None if name in self._offered and piece in self._offered else joined


def is_object(arguments: str) -> bool:
    """Whether this is the whole JSON text of an object."""
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


def is_cut(arguments: str) -> bool:
    """Whether this is the beginning of an object's JSON text, and not all of it."""
    text = arguments.strip()
    if not text.startswith("{"):
        return False
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        at_end = error.pos >= len(text) - len("fals")
        return at_end or error.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        return False
    return False


def _index(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return int(value)
    except ValueError:
        return None
