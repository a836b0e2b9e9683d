"""Background processes: their output goes to a log in the sandbox, where it is read while they run."""

from __future__ import annotations

import math
import secrets
from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote

from tools.sandboxes.base import OUTPUT_LIMIT, ProcessStatus, SandboxError, check_command
from tools.sandboxes.streaming import Streaming
from tools.sandboxes.trees import kill_script, mark_script

PROCESS_VARIABLE = "RL_CLI_PROCESS"
"""In the environment of a background process and of all that it starts."""
SECONDS = 60.0

# The subshell that waits for the command has not the variable: it outlives a kill, and notes the end.
_START = """\
mkdir -p {folder} && cd {folder} && cat >{id}.sh && : >{id}.log || exit
read up rest </proc/uptime
echo $up
(
  ( {mark}cd {cwd} && export {variable}={id} && exec /bin/sh -c '. "$0"' {folder}/{id}.sh ) >{id}.log 2>&1
  code=$?
  read up rest </proc/uptime
  echo $code $up >{id}.part && mv {id}.part {id}.end
) </dev/null >/dev/null 2>&1 &
echo $! >{id}.pid
"""

_STATUS = """\
cd {folder} 2>/dev/null || exit 0
read now rest </proc/uptime
ended() {{ [ -f $id.end ] && read end at rest <$id.end; }}
for id in {ids}; do
  [ -f $id.log ] && [ -f $id.pid ] && read pid rest <$id.pid || continue
  case $pid in ''|*[!0-9]*) continue;; esac
  ended || {{ kill -0 "$pid" 2>/dev/null && end=- at=$now; }} || ended || {{ end=137 at=$now; }}
  printf '%s %s %.9s %.20s\n' $id $(wc -c <$id.log) "$end" "$at"
done
"""

_KILL = """\
( {kill} ) || exit
for wait in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  [ -e {folder}/{id}.end ] && break
  sleep 0.1
done
"""


@dataclass(frozen=True)
class _Started:
    command: str
    at: float
    """Seconds of the sandbox's own uptime."""


class BackgroundProcesses(Streaming, ABC):
    """Runs commands in the background of any kind of sandbox; it needs `sh`, `grep`, `tail` and a /proc."""

    async def start_process(
        self, command: str, *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> str:
        check_command(command, cwd, env or {})
        id = secrets.token_hex(4)
        script = _START.format(
            folder=quote(self._logs),
            id=id,
            cwd=quote(_from(self.workdir, cwd)),
            variable=PROCESS_VARIABLE,
            mark=mark_script(id),
        )
        text = command.encode(errors="surrogateescape")
        answer = await self._ask(script, env=env or {}, stdin=text)
        self._started[id] = _Started(command, float(answer))
        return id

    async def processes(self) -> list[ProcessStatus]:
        if not self._started:
            return []
        answer = await self._ask(_STATUS.format(folder=quote(self._logs), ids=" ".join(self._started)))
        records = {
            words[0]: words[1:] for words in map(str.split, answer.decode(errors="replace").splitlines())
        }
        return [_status(id, started, records.get(id, [])) for id, started in self._started.items()]

    async def read_process(self, id: str, offset: int = 0, limit: int = OUTPUT_LIMIT) -> bytes:
        if id not in self._started:
            raise KeyError(id)
        log = quote(f"{self._logs}/{id}.log")
        return await self._ask(f"[ ! -f {log} ] || tail -c +{offset + 1} {log} | head -c {limit}")

    async def kill_process(self, id: str) -> None:
        if id not in self._started:
            raise KeyError(id)
        kill = kill_script(PROCESS_VARIABLE, id)
        await self._ask(_KILL.format(kill=kill, folder=quote(self._logs), id=id))

    @property
    def _logs(self) -> str:
        return f"{self.private}/background"

    @property
    def _started(self) -> dict[str, _Started]:
        started: dict[str, _Started] = self.__dict__.setdefault("_background", {})
        return started

    async def _ask(self, script: str, *, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> bytes:
        code, answer, error = await self._stream(script, env=env or {}, stdin=stdin, seconds=SECONDS)
        if code:
            reason = " ".join(error.decode(errors="replace").split())
            raise SandboxError(
                f"{self.kind}: background processes do not work: {reason or f'exit code {code}'}"
            )
        return answer


def _status(id: str, started: _Started, record: list[str]) -> ProcessStatus:
    try:
        size, code, at = record
        took = max(0.0, float(at) - started.at)
        if math.isfinite(took):
            return ProcessStatus(
                id, started.command, code == "-", None if code == "-" else int(code), took, int(size)
            )
    except ValueError:  # a command has changed what was noted, or removed it
        pass
    return ProcessStatus(id, started.command, running=False, exit_code=None, seconds=0.0, size=0)


def _from(workdir: str, cwd: str | None) -> str:
    if cwd is None:
        return workdir
    return cwd if cwd.startswith("/") else f"{workdir}/{cwd}"
