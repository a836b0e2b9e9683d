"""Short ways to call the sample tools."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.tools.sample_tools import TOOLSET
from tools.dispatcher import CallContext, Caller, handle_function_call


def context(caller: Caller = "chat", **fields: Any) -> CallContext:
    return CallContext(caller=caller, task_id="t-1", toolsets=fields.pop("toolsets", (TOOLSET,)), **fields)


def call(name: Any, arguments: Any = None, given: CallContext | None = None, **fields: Any) -> dict[str, Any]:
    """The parsed result, after checks that hold for every result."""
    given = given or context(**fields)
    text = asyncio.run(handle_function_call(name, arguments, given))
    assert len(text) <= max(given.result_limit, 600)
    result = json.loads(text.encode(), parse_constant=lambda constant: 1 / 0)
    assert isinstance(result, dict)
    assert isinstance(result["ok"], bool)
    if not result["ok"]:
        assert result["error"].keys() - {"hint"} == {"type", "message"}
        assert all(isinstance(v, str) and v for v in result["error"].values())
    return result


def error(name: Any, arguments: Any = None, **fields: Any) -> tuple[str, str]:
    """Type of the error, and its message and hint."""
    result = call(name, arguments, **fields)
    assert not result["ok"], result
    return result["error"]["type"], f"{result['error']['message']} | {result['error'].get('hint', '')}"
