"""Who may say yes to a call: a flag, or the person at the terminal."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from rl_cli.core.json_text import to_json
from tools.spec import ApprovalRequest, ToolSpec, Verdict

Approver = Callable[[ApprovalRequest], Awaitable[Verdict]]

YES = ("y", "yes", "是", "好", "可以")
WILL = {
    "execute": "run code on this computer",
    "spend": "take this computer for a while, or cost money on a rented one",
}


def make_approver(yes: bool, interactive: bool) -> Approver:
    """The approval policy of one command.

    Reading and writing are always allowed. Executing and spending are allowed by `yes`, else asked on the
    terminal, else refused.

    Args:
        yes: The person approved everything beforehand (--yes).
        interactive: There is a terminal to ask at.
    """
    one_question_at_a_time = asyncio.Lock()

    async def approve(request: ApprovalRequest) -> Verdict:
        spec, arguments = request.spec, request.arguments
        if yes or spec.risk in ("read", "write"):
            return Verdict(True)
        if not interactive:
            return Verdict(False, f"it may {WILL[spec.risk]}; there is no terminal to ask at, and no --yes")
        async with one_question_at_a_time:
            answer = await _ask(spec, arguments)
        if answer.strip().casefold() in YES:
            return Verdict(True)
        return Verdict(False, "the person said no")

    return approve


def describe_call(spec: ToolSpec, arguments: dict[str, Any]) -> str:
    """A call as a person should see it before it runs, with nothing hidden by control characters."""
    lines = [f"{spec.name} may {WILL.get(spec.risk, spec.risk)}:"]
    lines += [f"  {name} = {_visible(to_json(value))}" for name, value in arguments.items()]
    return "\n".join(lines)


async def _ask(spec: ToolSpec, arguments: dict[str, Any]) -> str:
    print(f"{describe_call(spec, arguments)}\nAllow it? [y/N] ", end="", file=sys.stderr, flush=True)
    # Not in a thread: one that still waits for input when the command is interrupted cannot be ended.
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    terminal = sys.stdin.fileno()
    loop.add_reader(terminal, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(terminal)
    return os.read(terminal, 4096).decode(errors="replace")


def _visible(text: str) -> str:
    """Characters that would move the cursor, turn the text round or show nothing, as escapes."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
