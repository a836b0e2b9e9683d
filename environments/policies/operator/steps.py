"""What a procedure yields and what it gets back: calls, results, and the two ways to go wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Call:
    """One tool call, with the line of text that goes with it."""

    name: str
    arguments: dict[str, Any]
    say: str


class Declined(str):
    """An answer which says that what was asked for was not done."""


class Unreadable(Exception):
    """A tool's result is not the JSON object it should be, or lacks a figure that is needed."""

    def __init__(self, tool: str, what: str) -> None:
        super().__init__(f"{tool}: {what}")
        self.tool = tool
        self.what = what


class ToolFailed(Exception):
    """A tool answered `{"ok": false}` where the procedure cannot go on without it."""

    def __init__(self, result: Result) -> None:
        super().__init__(f"{result.tool}: {result.message}")
        self.result = result


class Result:
    """A tool's answer, read from the text of a tool message.

    Raises:
        Unreadable: The text is no JSON object.
    """

    def __init__(self, tool: str, content: str) -> None:
        self.tool = tool
        try:
            data = json.loads(content)
        except (ValueError, RecursionError) as problem:
            raise Unreadable(tool, "the result is not JSON") from problem
        if not isinstance(data, dict):
            raise Unreadable(tool, "the result is not a JSON object")
        self.data: dict[str, Any] = data
        error = data.get("error")
        self.error: dict[str, Any] = error if isinstance(error, dict) else {}

    @property
    def ok(self) -> bool:
        return self.data.get("ok") is True

    @property
    def kind(self) -> str:
        """The error's type, "" where there is none."""
        return text(self.error.get("type"))

    @property
    def message(self) -> str:
        return text(self.error.get("message"))

    @property
    def hint(self) -> str:
        return text(self.error.get("hint"))

    def need(self, key: str, kind: type) -> Any:
        """The value at `key`, which must be a `kind`; raises Unreadable."""
        value = self.data.get(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise Unreadable(self.tool, f"'{key}' is missing or no {kind.__name__}")
        return value

    def section(self, key: str) -> dict[str, Any]:
        """The object at `key`, {} where there is none."""
        value = self.data.get(key)
        return value if isinstance(value, dict) else {}

    def rows(self, key: str) -> list[dict[str, Any]]:
        """The objects in the list at `key`."""
        value = self.data.get(key)
        return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


Procedure = Generator[Call, Result, str]
"""Yields calls, is sent their results, returns the answer. Run from the start on the recorded results, it is
at the same place again: that is the operator's whole memory."""


def must(call: Call) -> Generator[Call, Result, Result]:
    """The result of a call that the procedure cannot do without; raises ToolFailed."""
    result = yield call
    if not result.ok:
        raise ToolFailed(result)
    return result


def text(value: object) -> str:
    """`value` if it is a string, else ""."""
    return value if isinstance(value, str) else ""


def figure(value: object) -> float | None:
    """`value` if it is a finite number, else None (metrics write NaN as a string)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        return None
