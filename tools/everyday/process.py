"""Tool: processes in the background of the task's sandbox."""

from __future__ import annotations

from typing import Any, Literal

from tools.dispatcher import CallContext, ToolError, tool
from tools.everyday.shell_session import ShellSession, session_of
from tools.everyday.task_sandbox import COVERED, confinement, tool_errors
from tools.sandboxes.base import ProcessStatus
from tools.sandboxes.bash import for_bash

LOG_BYTES = 32_000
"""Of the output that one call returns."""

DAMAGED = "what the sandbox had noted of this process was changed or removed: how it goes is not known"


@tool(toolset="terminal", risk="execute", estimate=confinement, covers=COVERED)
async def process(
    action: Literal["start", "list", "poll", "log", "kill"],
    context: CallContext,
    command: str = "",
    id: str = "",
    offset: int = -1,
) -> dict[str, Any]:
    """Starts and looks after processes that run in the background, such as servers and long work.

    Args:
        action: start a command; list all; poll one (does it run, how did it end); log its output; kill it.
        command: For start: what to run, in the terminal's working folder and with its variables.
        id: For poll, log and kill: what start returned.
        offset: For log: the byte to begin at, -1 for the end; "next" of a log goes on from there.
    """
    session = await session_of(context)
    with tool_errors():
        if action == "start":
            return await _start(session, command)
        statuses = await session.sandbox.processes()
        if action == "list":
            return {"processes": [_shown(session, status) for status in statuses]}
        status = next((status for status in statuses if status.id == id), None)
        if status is None and not id:
            raise ToolError("invalid_arguments", f"{action} needs the id that start returned")
        if status is None:
            known = ", ".join(each.id for each in statuses) or "none was started"
            raise ToolError("unknown_process", f"there is no process '{id:.100}'", f"known: {known}")
        if action == "log":
            start = offset if offset >= 0 else max(0, status.size - LOG_BYTES)
            data = await session.sandbox.read_process(id, start, LOG_BYTES)
            text = data.decode("utf-8", errors="replace")
            return {**_shown(session, status), "offset": start, "next": start + len(data), "output": text}
        if action == "kill":
            await session.sandbox.kill_process(id)
            status = next(each for each in await session.sandbox.processes() if each.id == id)
        return _shown(session, status)


async def _start(session: ShellSession, command: str) -> dict[str, Any]:
    if not command.strip():
        raise ToolError("invalid_arguments", "start needs a command")
    id = await session.sandbox.start_process(for_bash(await session.script(command, save=False)))
    session.commands[id] = command
    return {"id": id, "command": command}


def _shown(session: ShellSession, status: ProcessStatus) -> dict[str, Any]:
    damaged = not status.running and status.exit_code is None
    return {
        "id": status.id,
        "command": session.commands.get(status.id, status.command),
        "running": status.running,
        "exit_code": status.exit_code,
        "seconds": round(status.seconds, 1),
        "output_bytes": status.size,
        **({"hint": DAMAGED} if damaged else {}),
    }
