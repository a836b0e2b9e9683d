"""The shell script around a command that runs at the far end of a transport, and how its end is recognised.

A transport ends late, while something in the background holds its pipes, or early, when the connection
breaks, and its exit code may be its own. So the script writes a mark and the exit code on both streams when
the shell of the command has ended. The script itself comes over standard input: a command line is limited,
and `ps` shows it to everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from shlex import quote

from tools.sandboxes.base import check_command
from tools.sandboxes.trees import mark_script

COMMAND_VARIABLE = "RL_CLI_COMMAND"
"""In the environment of a command and of all that it starts."""
WRAPPER_VARIABLE = "RL_CLI_WRAPPER"
"""In the environment of the shells around a command, not in the command's."""
LONGEST_ARGUMENT = 100_000
"""Bytes of a command that are handed over as an argument; Linux takes 128 KiB."""

# Output passes through `cat`, which reads on into the void when the transport has gone: what runs on in the
# background would die of its next line.
_DRAIN = "trap '' PIPE; cat; exec cat >/dev/null;"
_DETACHED_DRAIN = f"exec 4<&0; ( {_DRAIN} ) <&4 4<&- &"
# Where memory runs out, a command ends before the shells around it, and before a container's first process.
_FIRST_VICTIM = "{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null"
_WRAPPER = """\
drain() {{ {drain} }}
exec 9>&2 2>/dev/null
{{ {{
( {first}; {limit}unset {variable}; cd {cwd} || exit; {exports}{command} ) {stdin}>&7 2>&8 7>&- 8>&- 9>&-
code=$?
printf '{mark}%d\\n' "$code" >&7
printf '{mark}%d\\n' "$code" >&8
{after}}} 7>&6 8>&1 6>&- | drain >&9 6>&-; }} 6>&1 | drain
"""


def wrapped(
    command: str,
    mark: str,
    *,
    cwd: str,
    env: Mapping[str, str],
    has_stdin: bool,
    scratch: str = "",
    ends_alone: bool = False,
    id: str = "",
) -> bytes:
    """The script.

    Args:
        mark: Written on both streams at the end, with the exit code; letters and digits.
        env: Variables to set.
        has_stdin: Whether the command reads what follows the script on standard input.
        scratch: A file that may be written if the command is too long for an argument.
        ends_alone: Whether the script ends with the command, though the last output is still under way: sshd
            reads it to its end, and counts a session as open until then.
        id: What the command is marked with, see `mark_script`.

    Raises:
        ValueError: As `check_command`.
    """
    check_command(command, cwd, env)
    exports = "".join(f"export {name}={quote(value)}; " for name, value in env.items())
    after = ""
    run = f"exec /bin/sh -c {quote(command)}"
    if len(command.encode(errors="surrogateescape")) > LONGEST_ARGUMENT:
        file = quote(scratch)
        run = f"printf %s {quote(command)} >{file} && exec /bin/sh -c '. \"$0\"' {file}"
        after = f"rm -f {file}\n"
    return _WRAPPER.format(
        limit=mark_script(id) if id else "",
        variable=WRAPPER_VARIABLE,
        first=_FIRST_VICTIM,
        cwd=quote(cwd if cwd.startswith("/") else f"./{cwd}"),
        exports=exports,
        command=run,
        stdin="" if has_stdin else "</dev/null ",
        mark=mark,
        drain=_DETACHED_DRAIN if ends_alone else _DRAIN,
        after=after,
    ).encode(errors="surrogateescape")


def reader(script: bytes, id: str) -> str:
    """What the far shell is started with: it takes the script from its input, and leaves the rest there."""
    read = f'eval "$(dd bs=1 count={len(script)} 2>/dev/null)"'
    return f"export {WRAPPER_VARIABLE}={id}; exec /bin/sh -c '{read}'"


class UntilMark:
    """Passes a stream on until the mark comes.

    Args:
        sink: Takes what comes before it.
    """

    def __init__(self, mark: str, sink: Callable[[bytes], None]) -> None:
        self._mark, self._sink = mark.encode(), sink
        self._held = b""
        self.exit_code: int | None = None
        """Known when the mark has come."""

    def feed(self, data: bytes) -> None:
        if self.exit_code is not None:
            return
        data = self._held + data
        at = data.find(self._mark)
        if at < 0:
            at = max(0, len(data) - len(self._mark) + 1)
        elif b"\n" in (rest := data[at + len(self._mark) :]):
            self.exit_code = int(rest[: rest.index(b"\n")])
        self._held = data[at:] if self.exit_code is None else b""
        if at:
            self._sink(data[:at])

    def end(self) -> None:
        """The stream has ended, or is given up: what may have been the beginning of a mark was none."""
        held, self._held = self._held, b""
        if held:
            self._sink(held)
