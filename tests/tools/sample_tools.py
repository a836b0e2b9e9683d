"""Tools for the tests, as an author would write them: one for every way a tool can behave."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field

from rl_cli.core.errors import BadUsage, Refused, WorkFailed
from tools.dispatcher import ToolError, tool
from tools.spec import CallContext

if TYPE_CHECKING:
    from pathlib import Path  # noqa: F401

TOOLSET = "test"
ENDED: list[str] = []
"""What cleaned up after itself."""


class Point(BaseModel):
    x: int
    y: int = 0


@tool(toolset=TOOLSET)
def echo(
    text: str,
    count: int = 1,
    ratio: float | None = None,
    mode: Literal["plain", "loud"] = "plain",
    tags: list[str] | None = None,
    options: dict[str, Any] | None = None,
    point: Point | None = None,
    json: Annotated[int, Field(ge=0, le=9)] = 0,
    model_copy: bool = False,
) -> dict[str, Any]:
    """Returns what it was given.

    Has a second paragraph.

    Args:
        text: What to say,
            over two lines.
        count (int): How often.

    Returns:
        Everything.
    """
    where = {"point": point, "json": json, "model_copy": model_copy}
    return {
        "text": text,
        "count": count,
        "ratio": ratio,
        "mode": mode,
        "tags": tags,
        "options": options,
        **where,
    }


@tool(toolset=TOOLSET)
async def whoami(context: CallContext) -> dict[str, Any]:
    """Says who calls."""
    context.state["seen"] = context.state.get("seen", 0) + 1
    return {"caller": context.caller, "task_id": context.task_id}


@tool(toolset=TOOLSET)
def give(kind: str) -> Any:
    """Returns something awkward."""
    loop: list[Any] = []
    loop.append(loop)
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    return {
        "none": None,
        "number": 7,
        "nan": {"loss": math.nan, "worst": -math.inf},
        "surrogate": {"text": "a\ud83d", "pair": "\ud83d\ude00"},
        "bytes": b"\xff",
        "model": Point(x=1),
        "self": loop,
        "deep": deep,
        "huge_integer": 10**6000,
        "failure": {"ok": False, "error": {"type": "mine", "message": "no"}},
        "failure_text": {"ok": False, "error": "no"},
        "failure_bare": {"ok": False, "why": "no"},
        "keys": {(1, 2): {3: "x"}},
    }[kind]


@tool(toolset=TOOLSET)
def fail(kind: str) -> None:
    """Raises something."""

    class Nameless(Exception):
        def __str__(self) -> str:
            raise ValueError

    raise {
        "tool": ToolError("no_such_file", "there is no a.txt", "try b.txt"),
        "usage": BadUsage("unknown run 'x'", "known: y"),
        "work": WorkFailed("the disk is full"),
        "refused": Refused("over the budget"),
        "bug": KeyError("x"),
        "nameless": Nameless(),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
        "stop": StopIteration(),
        "extra": ModuleNotFoundError("No module named 'trl'", name="trl"),
    }[kind]


@tool(toolset=TOOLSET)
async def fail_async(kind: str) -> None:
    """Raises something, asynchronously."""
    if kind == "exit":
        sys.exit(3)
    if kind == "cancelled":
        raise asyncio.CancelledError
    raise ValueError("x" * 100_000)


@contextmanager
def recorded(name: str) -> Iterator[None]:
    try:
        yield
    finally:
        ENDED.append(name)


@tool(toolset=TOOLSET)
async def sleep(seconds: float) -> None:
    """Waits."""
    with recorded("sleep"):
        await asyncio.sleep(seconds)


@tool(toolset=TOOLSET)
async def cling(seconds: float) -> None:
    """Does not want to be cancelled."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            continue


@tool(toolset=TOOLSET)
def block(seconds: float, context: CallContext) -> None:
    """Waits in its thread."""
    with recorded("block"):
        context.cancelled.wait(seconds)


@tool(toolset=TOOLSET)
def hang(seconds: float) -> None:
    """Waits in its thread and listens to nobody."""
    time.sleep(seconds)


@tool(toolset=TOOLSET, deadline=0.1)
async def wait_a_little(seconds: float) -> None:
    """Declares its own deadline."""
    await asyncio.sleep(seconds)


@tool(toolset=TOOLSET, deadline=math.inf)
async def wait_on(seconds: float) -> None:
    """Waits as long as it takes."""
    await asyncio.sleep(seconds)


@tool(toolset=TOOLSET)
def long(characters: int, lines: int = 0, quotes: bool = False) -> dict[str, Any]:
    """Returns much."""
    unit = '"\n' if quotes else "0123456789"
    output = f"HEAD{unit * (characters // len(unit))}TAIL"
    return {"output": output, "exit_code": 0, "rows": [{"n": n, "word": "abc"} for n in range(lines)]}


@tool(toolset=TOOLSET)
async def read_it(what: str = "") -> dict[str, Any]:
    """Reads."""
    return {"read": what}


@tool(toolset=TOOLSET, risk="write")
async def write_it(what: str = "") -> dict[str, Any]:
    """Writes."""
    return {"wrote": what}


@tool(toolset=TOOLSET, risk="execute")
async def execute_it(what: str = "") -> dict[str, Any]:
    """Executes."""
    return {"executed": what}


@tool(toolset=TOOLSET, risk="spend", exclusive=True)
async def spend_it(what: str = "") -> dict[str, Any]:
    """Spends."""
    return {"spent": what}
