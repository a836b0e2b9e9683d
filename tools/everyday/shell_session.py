"""What makes single commands a session: the working folder and the exported variables of the one before.

They are kept in a file inside the sandbox, which a command's shell reads before and writes after. Shell
options, functions, aliases and variables that are not exported end with their command, as does whatever a
command set that was ended at its deadline.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from shlex import quote

from tools.dispatcher import CallContext, ToolError
from tools.everyday.task_sandbox import sandbox_of, tool_errors
from tools.sandboxes.base import Sandbox, check_command

LONGEST_ARGUMENT = 100_000
"""Bytes of a command that fit into one argument of a program (Linux: 128 KiB); longer ones go by a file."""
OPENING_SECONDS = 60.0
SESSIONS = "shell_sessions"
"""Key of what lives with a context."""

RESTORE = (
    "if [ -f {folder}/env ]; then . {folder}/env; rl_cli_before=${{OLDPWD-}}; "
    'cd -- "$PWD" 2>/dev/null || echo "the working folder $PWD is gone" >&2; '
    '[ -z "$rl_cli_before" ] || OLDPWD=$rl_cli_before; unset rl_cli_before; fi; '
)
"""All on one line, so that the shell counts the lines of the command."""
SAVE = "unset RL_CLI_COMMAND; export PWD; export -p >{folder}/new && mv -f {folder}/new {folder}/env"
"""RL_CLI_COMMAND tells commands apart in some kinds of sandbox, so it must not outlive one."""
RUN = 'rl_cli_text=$1; set --; eval "unset rl_cli_text; $rl_cli_text"'


@dataclass
class ShellSession:
    """One caller's session in a task's sandbox."""

    sandbox: Sandbox
    folder: str
    shell: str
    commands: dict[str, str] = field(default_factory=dict)
    """Id of a background process -> what was asked for."""

    async def script(self, command: str, save: bool) -> str:
        """Text for `sh` that runs a command in the session; with or without effect on the next one.

        Raises:
            ValueError: No command can be this.
        """
        check_command(command, None, {})
        folder = quote(self.folder)
        program = RESTORE.format(folder=folder)
        if save:
            program += f"trap {quote(SAVE.format(folder=folder))} EXIT; "
        if len(command.encode(errors="surrogateescape")) > LONGEST_ARGUMENT:
            path = f"{self.folder}/{secrets.token_hex(8)}"
            await self.sandbox.write_bytes(path, command.encode(errors="surrogateescape"))
            command = f". {quote(path)}"
        name = self.shell.rpartition("/")[2]
        return f"exec {self.shell} -c {quote(program + RUN)} {name} {quote(command)}"


async def session_of(context: CallContext) -> ShellSession:
    """The caller's session, opened when first asked for. A verifier's is not the policy's.

    Raises:
        ToolError: As `sandbox_of`.
    """
    sandbox = await sandbox_of(context)
    sessions: dict[str, ShellSession] = context.live.setdefault(SESSIONS, {})
    if context.caller not in sessions:
        sessions[context.caller] = await _open(sandbox)
    return sessions[context.caller]


async def _open(sandbox: Sandbox) -> ShellSession:
    """bash where the sandbox has it: it is what models write for."""
    folder = f"{sandbox.private}/session-{secrets.token_hex(8)}"
    with tool_errors():
        probe = f"mkdir -p {quote(folder)} && {{ command -v bash || command -v sh; }}"
        result = await sandbox.run(probe, OPENING_SECONDS)
    if result.exit_code != 0:
        said = result.stderr.text.strip() or f"exit code {result.exit_code}"
        raise ToolError("sandbox", f"no shell session can be opened in the sandbox: {said}")
    return ShellSession(sandbox, folder, result.stdout.text.strip())
