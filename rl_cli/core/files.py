"""Files that survive a crash: whole or absent when replaced, line by line when appended.

Links are not written through: replacing puts a file in their place, appending refuses them. Only regular
files are read, so that a pipe hangs nobody.
Appending takes no lock: one write of one line to a file opened with O_APPEND. What a crash or a full disk
leaves of a line stays in the file as a line of its own, which readers skip. Secrets in text are masked on the
way (see `redaction`); bytes are written as they are.
Not covered: appending to a network file system from several machines at once.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from rl_cli.core.errors import BadUsage, RlCliError, WorkFailed
from rl_cli.core.json_text import load_json, parse_json
from rl_cli.core.redaction import redact_text, redacted_json

StrPath = str | os.PathLike[str]


def write_atomic(path: StrPath, data: str | bytes) -> None:
    """Replaces `path` so that readers, and whoever comes after a crash, see the old or the new content only.

    Args:
        path: The file; a link is replaced, and what it leads to stays.
        data: Text, whose secrets are masked, or bytes.

    Raises:
        OSError: As `open` does; the old file is untouched and nothing is left beside it.
    """
    _replace(path, redact_text(data).encode() if isinstance(data, str) else data)


def _replace(path: StrPath, payload: bytes) -> None:
    target = os.path.abspath(path)
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:100]}.{os.urandom(6).hex()}.tmp")
    with _naming(target):
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            try:
                _write_all(descriptor, payload)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
        sync_folder(folder)


def write_json(path: StrPath, value: Any) -> None:
    """Writes `value` as indented JSON, atomically. NaN becomes the string "NaN" (see `to_json`)."""
    _replace(path, (redacted_json(value, indent=2) + "\n").encode())


def read_json(path: StrPath) -> Any:
    """The content of a JSON file.

    Raises:
        OSError: As `open_regular` does.
        ValueError: It is not JSON.
    """
    with open_regular(path) as file:
        return load_json(file.read().decode("utf-8"))


def open_regular(path: StrPath) -> BinaryIO:
    """A file opened for reading; a link is followed.

    Raises:
        OSError: As `open` does, or it is no regular file: a pipe or a device may have no end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
    what = os.strerror(number) if stat.S_ISDIR(mode) else "a pipe or a device, not a file"
    raise OSError(number, what, os.fspath(path))


def append_jsonl(path: StrPath, row: dict[str, Any], fsync: bool = False) -> None:
    """Appends one line. A torn last line is closed off first, so that the two are never glued.

    Args:
        path: The file; created when missing, its folder must exist.
        row: What to write.
        fsync: Return only once the line is on the disk.

    Raises:
        OSError: It cannot be written, or it is a link or a pipe.
    """
    payload = redacted_json(row).encode() + b"\n"
    with _naming(path):
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            status = os.fstat(descriptor)
            if stat.S_ISFIFO(status.st_mode):
                raise OSError(errno.EINVAL, "a pipe, not a file")
            size = status.st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                payload = b"\n" + payload
            _write_all(descriptor, payload)
            if fsync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if fsync and size == 0:
            sync_folder(os.path.dirname(os.path.abspath(path)))


def read_jsonl(path: StrPath, start: int = 0) -> Iterator[dict[str, Any]]:
    """The rows of a JSONL file from byte `start` on; none if the file is missing.

    Lines that are no JSON object (torn by a crash) are skipped.
    """
    try:
        file = open_regular(path)
    except FileNotFoundError:
        return
    with file:
        file.seek(start)
        for line in file:
            row = _row(line)
            if row is not None:
                yield row


def tail_jsonl(path: StrPath, offset: int, chunk: int | None = None) -> tuple[list[dict[str, Any]], int]:
    """The rows whose lines were finished since byte `offset`, and the offset to ask with next time.

    A line that is still being written is left for the next call. A file that has become shorter is read anew.

    Args:
        path: The file.
        offset: Where to begin: 0, or what the last call returned.
        chunk: Stop at the end of the line that is reached after so many bytes; None reads on to the end.
    """
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size < offset:
                offset = 0
            file.seek(offset)
            data = file.read() if chunk is None else file.read(chunk) + file.readline()
    except FileNotFoundError:
        return [], 0
    whole = data[: data.rfind(b"\n") + 1]
    rows = [row for line in whole.split(b"\n") if (row := _row(line, parse_json)) is not None]
    return rows, offset + len(whole)


def explain_os_error(error: OSError, path: StrPath | None = None) -> RlCliError:
    """The error as a person should read it: what cannot be done with which path, and what helps.

    Args:
        error: What was raised.
        path: The path to name; default: the one in the error.
    """
    if path is None:
        path = error.filename if isinstance(error.filename, str) else None
    where = str(path) if path is not None else "a file"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return WorkFailed(f"the disk is full: cannot write {where}", "free some space and try again")
    if error.errno == errno.EROFS:
        return BadUsage(f"cannot write {where}: it is on a read-only file system")
    if error.errno in (errno.EACCES, errno.EPERM):
        return BadUsage(f"no permission for {where}", "check its owner and mode")
    if error.errno == errno.ENOENT:
        return BadUsage(f"{where} does not exist")
    if error.errno == errno.EEXIST:
        return BadUsage(f"{where} exists already")
    if error.errno == errno.ENOTDIR:
        return BadUsage(f"{where} is not in a folder: a part of the path is a file")
    if error.errno == errno.EISDIR:
        return BadUsage(f"{where} is a folder, not a file")
    if error.errno == errno.ELOOP:
        return BadUsage(f"{where} is a link, and nothing is written through it", "remove the link")
    return WorkFailed(f"{where}: {error.strerror or error}")


def _row(line: bytes, parse: Callable[[str], Any] = load_json) -> dict[str, Any] | None:
    try:
        value = parse(line.decode())
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


@contextmanager
def _naming(path: StrPath) -> Iterator[None]:
    """Errors name the file that was to be written: those of a descriptor name none."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = os.fspath(path), None
        raise


def _write_all(descriptor: int, payload: bytes) -> None:
    view = memoryview(payload)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Has the names in a folder on the disk, where its file system can. Raises OSError."""
    descriptor = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:  # some file systems cannot sync a folder
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
