"""Tool: a command in the task's sandbox."""

from __future__ import annotations

import re
import time
from typing import Any

from tools.dispatcher import CallContext, ToolError, tool
from tools.everyday.shell_session import session_of
from tools.everyday.task_sandbox import COVERED, confinement, tool_errors
from tools.sandboxes.base import Sandbox

DEFAULT_SECONDS = 120
MOST_SECONDS = 1800
START_SECONDS = 600
"""Beyond its time-out a call may take as long to make the sandbox."""
OUTPUT_BYTES = 32_000
"""Of each stream that the caller is given: half from the beginning, half from the end."""
WANTED_A_TERMINAL = re.compile(
    r"not a (tty|terminal)|no tty|input device is not a TTY|must be run (from|in) a terminal"
    r"|terminal is required|Inappropriate ioctl|Error opening terminal|TERM environment variable not set"
    r"|Output is not to a terminal|Input is not from a terminal|terminal prompts disabled"
    r"|cannot open /dev/tty"
    r"|EOF when reading a line|could not read (Username|Password)|Host key verification failed"
    r"|/dev/tty: No such device|problem with the editor|a password is required",
    re.IGNORECASE,
)
TERMINAL_HINT = (
    "it wanted a terminal or input, and there is neither: use options such as -y, --no-pager or --batch, "
    "pipe the input in, and edit files with patch or write_file"
)


@tool(
    toolset="terminal",
    risk="execute",
    deadline=MOST_SECONDS + START_SECONDS,
    exclusive=True,
    estimate=confinement,
    covers=COVERED,
)
async def terminal(
    command: str,
    context: CallContext,
    timeout: float = DEFAULT_SECONDS,  # noqa: ASYNC109 (a partial result, no exception)
) -> dict[str, Any]:
    """Runs a shell command in the sandbox and returns its exit code and output.

    The working folder and exported variables persist from one command to the next. There is no terminal and
    no input. What is left running with & goes on, but its later output is lost: for servers and long work use
    the tool process. Of very long output the beginning and the end are returned.

    Args:
        command: For bash where there is one, else sh.
        timeout: Seconds until the command and all that it started are ended, at most 1800.
    """
    check_timeout(timeout)
    session = await session_of(context)
    with tool_errors():
        script = await session.script(command, save=True)
    return await run_for(context, session.sandbox, script, timeout, bash=True)


def check_timeout(seconds: float) -> None:
    """Raises ToolError ("invalid_arguments") for one that no command may have."""
    if not 0 < seconds <= MOST_SECONDS:
        raise ToolError("invalid_arguments", f"timeout must be above 0 and at most {MOST_SECONDS} seconds")


async def run_for(
    context: CallContext,
    sandbox: Sandbox,
    script: str,
    timeout: float,  # noqa: ASYNC109
    bash: bool = False,
) -> dict[str, Any]:
    """Runs a text in a sandbox, as its `run` does; what a model is told of how it went."""
    if context.deadline is not None:  # partial output is better than none
        timeout = max(0.1, min(timeout, context.deadline - time.monotonic() - 1))
    with tool_errors():
        result = await sandbox.run(script, timeout, output_limit=OUTPUT_BYTES, bash=bash)
    told: dict[str, Any] = {
        "exit_code": result.exit_code,
        "stdout": result.stdout.text,
        "stderr": result.stderr.text,
        "truncated": result.stdout.truncated or result.stderr.truncated,
        "seconds": round(result.seconds, 3),
    }
    full_screen = "\x1b[" in told["stdout"]
    if result.timed_out:
        told["timed_out"] = True
    if result.timed_out and not full_screen:
        told["hint"] = (
            f"it was ended after {timeout:.4g} seconds: give a longer timeout, or start it with the tool "
            "process; if it waited for input, there is none"
        )
    elif result.timed_out or (
        result.exit_code != 0 and WANTED_A_TERMINAL.search(told["stderr"] + told["stdout"])
    ):
        told["hint"] = TERMINAL_HINT
    return told
