"""The logs of a run's processes: their last lines, and the line that says what went wrong."""

from __future__ import annotations

import re
from pathlib import Path

from rl_cli.core.cuts import head
from rl_cli.core.files import open_regular
from rl_cli.core.masked_files import mask_file
from rl_cli.core.redaction import StreamRedactor
from rl_cli.runs.containment import is_inside
from rl_cli.runs.stack_dumps import in_traceback_order

TAIL_BYTES = 64 * 1024
_ERROR = re.compile(r"^(?:[\w.]*(?:Error|Exception|Exit|Interrupt|Warning)\b|Fatal|fatal|ERROR|error)[^a-z]?")
_FIGURES = re.compile(r"\{['\"][\w/ ]+['\"]: |\d%\|")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


def last_lines(path: Path, count: int = 20) -> list[str]:
    """The last `count` meaningful lines: not blank, progress bars as they stood at last, no escape codes.

    What hangs or was killed tells so as a traceback does: see `in_traceback_order`.
    """
    try:
        with open_regular(path) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            data = file.read()
    except FileNotFoundError:
        return []
    text = data.decode("utf-8", "replace")
    whole = text.split("\n") if size <= TAIL_BYTES else text.split("\n")[1:]
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in whole]
    cleaned = [head(_ESCAPES.sub("", line).rstrip(), 2000) for line in lines]
    return in_traceback_order([line for line in cleaned if line])[-count:]


def mask_logs(folder: Path) -> None:
    """Masks the secrets in the logs of a run that is over: what its processes wrote past Python.

    Logs that a link leads out of the run to are left alone.

    Args:
        folder: The run's `logs`.

    Raises:
        OSError: A log cannot be read or written.
    """
    for path in folder.glob("*.log"):
        if path.is_file() and is_inside(folder.parent, path):
            mask_file(path)


def error_line(lines: list[str]) -> str | None:
    """The last exception or error, if there is one."""
    return next((line for line in reversed(lines) if _ERROR.match(line)), None)


def telling_line(lines: list[str]) -> str | None:
    """The line that most likely says what went wrong: the last exception or error, else the last line.

    Figures of a step and progress bars say nothing of that.
    """
    words = (line for line in reversed(lines) if not _FIGURES.search(line))
    return error_line(lines) or next(words, None)


class Tail:
    """What a log gains, from `lines` lines before its end on. Escape codes and secrets are taken out."""

    def __init__(self, path: Path, lines: int) -> None:
        self.path = path
        self._redactor = StreamRedactor()
        self._offset = _back(path, lines)

    def read(self) -> str:
        with open_regular(self.path) as file:
            file.seek(self._offset)
            data = file.read()
        self._offset += len(data)
        text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
        return self._redactor.feed(_ESCAPES.sub("", text))

    def rest(self) -> str:
        """What read() held back because more might have come."""
        return self._redactor.flush()


def _back(path: Path, lines: int) -> int:
    """The offset at which the last `lines` lines begin."""
    with open_regular(path) as file:
        position = size = file.seek(0, 2)
        block = b""
        while position and block.count(b"\n") <= lines:
            step = min(TAIL_BYTES, position)
            position -= step
            file.seek(position)
            block = file.read(step) + block
    kept = block.splitlines(keepends=True)[-lines:] if lines else []
    return size - sum(map(len, kept))
