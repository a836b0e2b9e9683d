"""The ledger of a batch, for its one writer: an entry counts once it is on the disk.

Entries that wait at the same time are written and synced together, in a thread. Rows are written as they are
given: secrets are masked before. A reserve of bytes is set aside beside the ledger, so that a disk that fills
up still takes the samples in flight; `full` then says that no more should be asked.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from rl_cli.core.files import explain_os_error, sync_folder
from rl_cli.core.json_text import row_json
from rl_cli.data.batch.entries import Damage, Entry, parse_entry, read_entries
from rl_cli.data.batch.index import Index
from rl_cli.data.rows import Row

Waiting = tuple[bytes, Entry, asyncio.Future[None]]
"""A line, what it holds, and who waits for it."""
RESERVE_EACH = 64 * 1024
"""Bytes set aside for each sample in flight."""
MOST_RESERVE = 16 * 2**20


class Ledger:
    """Appends entries, and knows what has ended.

    Whoever makes it holds the batch's lock (`folder.BatchFolder.locked`), and calls close().

    Args:
        path: ledger.jsonl, created when missing.
        accepts: Whether a row counts towards the target of its item.
        in_flight: How many samples may be in flight.

    Raises:
        RlCliError: It cannot be opened, or the reserve cannot be set aside: the disk is full.
    """

    def __init__(
        self, path: Path, accepts: Callable[[Row], bool] = lambda row: True, in_flight: int = 8
    ) -> None:
        self.path = path
        self.index = Index(accepts)
        self.full = False
        """The disk is full, and what is being asked now goes into the reserve."""
        self._reserve = path.with_name(".reserve")
        self._waiting: deque[Waiting] = deque()
        self._flushing: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        try:
            self._set_aside(min(MOST_RESERVE, max(4, in_flight) * RESERVE_EACH))
            self.repaired = repair(path)
            """What was mended when it was opened, for a person; None: nothing was torn."""
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            sync_folder(path.parent)
            self._size = os.fstat(self._descriptor).st_size
            for _, entry in read_entries(path, damage := Damage()):
                self.index.add(entry)
        except OSError as error:
            raise explain_os_error(error, path) from error
        self.damaged = damage.lines
        """Lines that hold no entry; they are passed over."""

    async def append(self, entry: Entry) -> None:
        """Returns once the entry is on the disk. It is written also if the caller is cancelled meanwhile.

        Raises:
            WorkFailed: It could not be written, and nothing of it stands in the file.
        """
        line = row_json(cast(dict[str, Any], entry)) + b"\n"
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((line, entry, written))
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush(), name="write-ledger")
        await written

    def close(self) -> None:
        """Writes what still waits, and frees the reserve. May be called more than once.

        Raises:
            WorkFailed: Something could not be written.
        """
        if self._descriptor < 0:
            return
        outcomes = self._write_waiting()
        os.close(self._descriptor)
        self._descriptor = -1
        self._reserve.unlink(missing_ok=True)
        for _, error in outcomes:
            if error is not None:
                raise explain_os_error(error, self.path) from error

    async def _flush(self) -> None:
        while self._waiting:
            for (_, entry, written), error in await asyncio.to_thread(self._write_waiting):
                if error is None:
                    self.index.add(entry)
                if written.done():  # its caller was cancelled
                    continue
                if error is None:
                    written.set_result(None)
                else:
                    written.set_exception(explain_os_error(error, self.path))

    def _write_waiting(self) -> list[tuple[Waiting, OSError | None]]:
        with self._lock:
            taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if taken and (error := self._write(b"".join(line for line, _, _ in taken))) is not None:
                if len(taken) == 1:
                    return [(taken[0], error)]
                return [(one, self._write(one[0])) for one in taken]  # what of them fits
            return [(one, None) for one in taken]

    def _write(self, data: bytes) -> OSError | None:
        """Appends whole lines, or nothing. On a full disk the reserve makes room."""
        error = self._try(data)
        if error is not None and error.errno in (errno.ENOSPC, errno.EDQUOT):
            self.full = True
            self._reserve.unlink(missing_ok=True)
            error = self._try(data)
        return error

    def _try(self, data: bytes) -> OSError | None:
        if self._descriptor < 0:
            return OSError(errno.EBADF, "the ledger is closed")
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._descriptor, view) :]
            os.fsync(self._descriptor)
        except OSError as error:
            self._cut_back()
            return error
        self._size += len(data)
        return None

    def _cut_back(self) -> None:
        """Takes out what was written of lines that are not whole; closes the ledger where that fails."""
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:  # the next line would be glued to them
            os.close(self._descriptor)
            self._descriptor = -1

    def _set_aside(self, size: int) -> None:
        """Bytes that no file system leaves out as a hole or packs."""
        try:
            with self._reserve.open("wb") as file:
                file.write(os.urandom(size))
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            self._reserve.unlink(missing_ok=True)
            raise


def repair(path: Path) -> str | None:
    """Ends the ledger with a whole line: a last one without its end is finished if it is whole, else cut off.

    Returns:
        What was done, for a person; None where nothing was torn.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        size = os.fstat(descriptor).st_size
        start = _last_line(descriptor, size)
        if start == size:
            return None
        if parse_entry(os.pread(descriptor, size - start, start)) is not None:
            os.pwrite(descriptor, b"\n", size)
            told = "the last line of the ledger lacked its end, and is whole"
        else:
            os.ftruncate(descriptor, start)
            told = (
                f"the last line of the ledger was torn: {size - start} bytes of an unfinished entry cut off"
            )
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return told


def _last_line(descriptor: int, size: int) -> int:
    """Where the last line begins that has no end; `size` if there is none."""
    end, block = size, 2**16
    while end > 0:
        start = max(0, end - block)
        at = os.pread(descriptor, end - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0
