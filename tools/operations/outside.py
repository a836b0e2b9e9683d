"""Tool: a command outside of the sandbox, which the person is asked about each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rl_cli.core.errors import BadUsage
from tools.dispatcher import CallContext, Estimate, ToolError, tool
from tools.everyday.task_sandbox import tool_errors
from tools.everyday.terminal import DEFAULT_SECONDS, MOST_SECONDS, START_SECONDS, check_timeout, run_for
from tools.sandboxes.base import Resources, SandboxConfig
from tools.sandboxes.kinds import make

UNBOUNDED = Resources(memory_mib=None, disk_mib=None, processes=None)


def _place(context: CallContext, arguments: dict[str, Any]) -> Estimate:
    return Estimate(where=f"this computer, in {_folder()}")


def _folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise BadUsage("the folder that rl-cli was started in is gone", "start it again in another") from None


@tool(
    toolset="host",
    risk="leave",
    deadline=MOST_SECONDS + START_SECONDS,
    exclusive=True,
    estimate=_place,
)
async def run_outside(
    command: str,
    reason: str,
    context: CallContext,
    timeout: float = DEFAULT_SECONDS,  # noqa: ASYNC109 (a partial result, no exception)
) -> dict[str, Any]:
    """Runs a shell command on the person's computer itself, with its files, programs and network.

    The person is asked each time and may refuse. Only for what cannot be done in the sandbox: files outside
    of the working folder, the network. Begins in the working folder; nothing persists from call to call, and
    what it leaves running is ended.

    Args:
        command: For sh.
        reason: Why it must leave the sandbox, in a few words for the person.
        timeout: Seconds until the command and all that it started are ended, at most 1800.
    """
    check_timeout(timeout)
    if not reason.strip():
        raise ToolError("invalid_arguments", "reason: say why the command must leave the sandbox")
    env = {"HOME": str(Path.home())}
    with tool_errors():
        sandbox = make(SandboxConfig("local", network=True, workdir=_folder(), env=env, resources=UNBOUNDED))
        await sandbox.start()
    try:
        return await run_for(context, sandbox, command, timeout)
    finally:
        await sandbox.stop()
