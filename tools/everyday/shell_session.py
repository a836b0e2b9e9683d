"""What makes single commands a session: the working folder and the exported variables of the one before.

They are kept in files inside the sandbox, one for each command, beside a list of those that are whole: a
command's shell reads the last of them first and adds one at its end, without any other program. Shell
options, functions, aliases and variables that are not exported end with their command, as does whatever a
command set that was ended at its deadline.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from shlex import quote

from tools.dispatcher import CallContext
from tools.everyday.task_sandbox import sandbox_of
from tools.sandboxes.base import Sandbox, check_command

LONGEST_ARGUMENT = 100_000
"""Bytes of a command that fit into one argument of a program (Linux: 128 KiB); longer ones go by a file."""
SESSIONS = "shell_sessions"
"""Key of what lives with a context."""

RESTORE = (
    "if [ -f {file} ]; then while read -r rl_cli_last; do rl_cli_saved=$rl_cli_last; done <{file}; "
    'if [ -f {file}."$rl_cli_saved" ]; then . {file}."$rl_cli_saved"; rl_cli_before=${{OLDPWD-}}; '
    'cd -- "$PWD" 2>/dev/null || echo "the working folder $PWD is gone" >&2; '
    '[ -z "$rl_cli_before" ] || OLDPWD=$rl_cli_before; fi; unset rl_cli_before rl_cli_last rl_cli_saved; fi; '
)
"""All on one line, so that the shell counts the lines of the command."""
SAVE = "unset RL_CLI_COMMAND; export PWD; export -p >{file}.{number} && echo {number} >>{file}"
"""RL_CLI_COMMAND tells commands apart in some kinds of sandbox, so it must not outlive one."""


@dataclass
class ShellSession:
    """One caller's session in a task's sandbox."""

    sandbox: Sandbox
    file: str
    """Where the list is, in the sandbox; what is saved lies beside it."""
    saved: int = 0
    """Commands that were to save something."""
    commands: dict[str, str] = field(default_factory=dict)
    """Id of a background process -> what was asked for."""

    async def script(self, command: str, save: bool) -> str:
        """Text for bash or `sh` that runs a command in the session; with or without effect on the next one.

        Raises:
            ValueError: No command can be this.
        """
        check_command(command, None, {})
        file = quote(self.file)
        program = RESTORE.format(file=file)
        if save:
            self.saved += 1
            program += f"trap {quote(SAVE.format(file=file, number=self.saved))} EXIT; "
        if len(command.encode(errors="surrogateescape")) > LONGEST_ARGUMENT:
            path = f"{self.file}-{secrets.token_hex(8)}"
            await self.sandbox.write_bytes(path, command.encode(errors="surrogateescape"))
            command = f". {quote(path)}"
        return program + command


async def session_of(context: CallContext) -> ShellSession:
    """The caller's session, opened when first asked for. A verifier's is not the policy's.

    Raises:
        ToolError: As `sandbox_of`.
    """
    sandbox = await sandbox_of(context)
    sessions: dict[str, ShellSession] = context.live.setdefault(SESSIONS, {})
    if context.caller not in sessions:
        sessions[context.caller] = ShellSession(sandbox, f"{sandbox.private}/session-{secrets.token_hex(8)}")
    return sessions[context.caller]
