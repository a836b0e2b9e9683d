"""The side ledger of paid summaries: each is on the disk before it is used, and found by its request."""

from __future__ import annotations

import asyncio
import hashlib
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from rl_cli.core.json_text import load_json, row_json, to_json
from rl_cli.core.messages import Message

KEY_BYTES = 16


@dataclass(frozen=True)
class Paid:
    """A summary and what it took."""

    key: str
    """Hex of `key_of`."""
    text: str
    model: str
    input_tokens: int
    output_tokens: int
    calls: int
    """Requests to the endpoint, repeated ones included."""
    cost_usd: float


def key_of(model: str, request: list[Message]) -> bytes:
    """What a request is known by: who is asked, and all that is said."""
    return hashlib.sha256(to_json([model, request]).encode()).digest()[:KEY_BYTES]


class PaidSummaries:
    """The ledger, open for one process. It keeps the places of the lines in memory, not their texts.

    Args:
        path: Its file; made when missing. What a crash left of a last line is cut off.

    Raises:
        OSError: As `open` does.
    """

    def __init__(self, path: Path) -> None:
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - closed by close()
        self._lines = open(path, "rb")  # noqa: SIM115
        self._places: dict[bytes, int] = {}
        self._size = 0
        self._turn = asyncio.Lock()
        self._waiting: list[tuple[bytes, bytes]] = []
        self._error: OSError | None = None
        for line in self._lines:
            if not line.endswith(b"\n"):
                break
            with suppress(ValueError, TypeError):  # somebody has written into it
                self._places[bytes.fromhex(_read(line).key)] = self._size
            self._size += len(line)
        self._file.truncate(self._size)

    def __len__(self) -> int:
        return len(self._places)

    def find(self, key: bytes) -> Paid | None:
        """The summary that was paid for, if it was."""
        place = self._places.get(key)
        if place is None:
            return None
        self._lines.seek(place)
        return _read(self._lines.readline())

    async def add(self, paid: Paid) -> None:
        """Keeps a summary; returns once it is on the disk.

        Raises:
            OSError: It, or an earlier one, cannot be written; the ledger is as it was.
        """
        self._waiting.append((bytes.fromhex(paid.key), row_json(asdict(paid)) + b"\n"))
        async with self._turn:  # who comes first writes what waits
            written, self._waiting = self._waiting, []
            if written and not self._error:
                await asyncio.to_thread(self._append, b"".join(line for _, line in written))
            if self._error:
                raise self._error
            for key, line in written:
                self._places[key] = self._size
                self._size += len(line)

    def close(self) -> None:
        self._file.close()
        self._lines.close()

    def _append(self, lines: bytes) -> None:
        try:
            written = 0
            while written < len(lines):
                written += self._file.write(lines[written:])
            os.fsync(self._file.fileno())
        except OSError as error:
            self._error = error
            self._file.truncate(self._size)


def _read(line: bytes) -> Paid:
    return Paid(**load_json(line))
