"""The folder beside the output in which a compression goes on, and from which it goes on after a crash.

    OUTPUT.compress/pass.json          what is compressed, how; whether that pass is over
                    rows.jsonl         one report a row, with the places in input and outputs after it
                    output.part        becomes OUTPUT when all is done
                    over_limit.part    likewise, where rows over the limit are split off
                    summaries.jsonl    the side ledger of paid summaries; passes and settings share it
                    report.json        all rows in sum, replaced now and then

Rows are written in the order of the input. A report follows its row to the disk, so that what a crash leaves
behind the last whole report is cut off, and the pass goes on there.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rl_cli.core.errors import BadUsage
from rl_cli.core.files import read_json, write_json
from rl_cli.core.json_text import load_json, row_json
from rl_cli.core.processes import ProcessIdentity
from rl_cli.data.compression.report import RowReport, Totals, from_line, to_line
from rl_cli.data.compression.rows_in import Place


class Journal:
    """One pass over the input. Used within `with opened(...)`.

    Args:
        output: Where the rows are to be in the end.
        over_limit: Where those over the limit are to be, if not among the others.
        what: What is compressed and how; a pass that had anything else is not gone on with.
    """

    def __init__(self, output: Path, over_limit: Path | None, what: dict[str, Any]) -> None:
        self.output, self.over_limit = output, over_limit
        self.folder = folder_of(output)
        self.place = Place()
        self.totals = Totals()
        self.resumed = 0
        """Rows that an earlier process wrote."""
        self._what = what
        self._mine: list[list[int]] = []
        """What the outputs of this folder are known by."""
        self._files: dict[str, _File] = {}
        self._sizes = {"output": 0, "over_limit": 0}
        self._rows_size = 0

    def check(self) -> dict[str, Any]:
        """What is known of the pass before.

        Raises:
            BadUsage: There is an output already which is not this folder's.
        """
        known = self._known()
        self._mine = known.get("outputs", [])
        for target in filter(None, (self.output, self.over_limit)):
            if os.path.lexists(target) and not (target.is_file() and _stamp(target) in self._mine):
                raise BadUsage(f"{target} exists already", "name another output, or remove it")
        return known

    def open(self) -> None:
        """Goes on with the pass that was broken off, or begins a new one.

        Raises:
            BadUsage: As check() does.
            OSError: Something cannot be read or written.
        """
        known = self.check()
        if known.get("going") and known.get("what") == self._what:
            self._read(self.folder / "rows.jsonl")
        self._files = {name: _File(self.folder / f"{name}.part", size) for name, size in self._sizes.items()}
        self._files["rows"] = _File(self.folder / "rows.jsonl", self._rows_size)
        self._keep(going=True)

    def add(self, report: RowReport, place: Place, text: bytes | None) -> None:
        """Takes the next row: its report, where the input goes on after it, and what is written of it."""
        if text is not None:
            name = "over_limit" if report.over_limit and self.over_limit else "output"
            self._files[name].add(text if text.endswith(b"\n") else text + b"\n")
            self._sizes[name] = self._files[name].size
        self.totals.add(report)
        self.place = place
        after = {"input": [place.file, place.line, place.end], **self._sizes}
        self._files["rows"].add(row_json({**to_line(report), "after": after}) + b"\n")

    @property
    def held(self) -> int:
        """Bytes that are not on the disk yet."""
        return sum(file.held for file in self._files.values())

    async def commit(self) -> None:
        """Brings to the disk what was added: rows, then their reports."""
        for name in ("output", "over_limit", "rows"):
            await asyncio.to_thread(self._files[name].commit)

    async def tell(self, state: str, facts: dict[str, Any]) -> dict[str, Any]:
        """Says in report.json how far it is; returns that."""
        report = {"state": state, **self.totals.as_dict(), **facts}
        process = ProcessIdentity.current().to_dict() if state == "running" else None
        await asyncio.to_thread(write_json, self.folder / "report.json", {**report, "process": process})
        return report

    def finish(self) -> None:
        """Puts the outputs, all of whose rows are on the disk, in their places."""
        self._mine += [_stamp(self.folder / f"{name}.part") for name in self._sizes]
        self._keep(going=True)
        for name, target in (("over_limit", self.over_limit), ("output", self.output)):
            part = self.folder / f"{name}.part"
            if target:
                os.replace(part, target)
            else:
                part.unlink()
        self._keep(going=False)

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _known(self) -> dict[str, Any]:
        with suppress(FileNotFoundError, ValueError):
            return dict(read_json(self.folder / "pass.json"))
        return {}

    def _keep(self, going: bool) -> None:
        known = {"what": self._what, "going": going, "outputs": self._mine}
        write_json(self.folder / "pass.json", known)

    def _read(self, rows: Path) -> None:
        """Takes in the reports up to the last whose row is on the disk."""
        actual = {name: _size(self.folder / f"{name}.part") for name in self._sizes}
        if not rows.exists():
            return
        with open(rows, "rb") as lines:
            for line in lines:
                try:
                    row = load_json(line) if line.endswith(b"\n") else None
                except ValueError:
                    row = None
                if row is None or any(row["after"][name] > size for name, size in actual.items()):
                    return
                after = row.pop("after")
                self.totals.add(from_line(row))
                self.place = Place(*after.pop("input"))
                self._sizes = after
                self._rows_size += len(line)
                self.resumed += 1


class _File:
    """A file that is appended to from `size` on; what stood behind that is cut off."""

    def __init__(self, path: Path, size: int) -> None:
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - closed by close()
        self._file.truncate(size)
        self.size, self.held = size, 0
        self._waiting: list[bytes] = []

    def add(self, text: bytes) -> None:
        self._waiting.append(text)
        self.size += len(text)
        self.held += len(text)

    def commit(self) -> None:
        if not self._waiting:
            return
        view = memoryview(b"".join(self._waiting))
        self._waiting, self.held = [], 0
        while view:
            view = view[self._file.write(view) :]
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


@contextmanager
def opened(journal: Journal) -> Iterator[Journal]:
    """The journal, with its lock, ready to be added to.

    Raises:
        BadUsage: As Journal.open() does, or another process writes this output.
    """
    import filelock

    journal.check()  # before anything is made
    journal.folder.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(journal.folder / ".lock", timeout=0):
            try:
                journal.open()
                yield journal
            finally:
                journal.close()
    except filelock.Timeout as error:
        raise BadUsage(f"another process is writing {journal.output}", "wait for it, or end it") from error


def folder_of(output: Path) -> Path:
    """Where the compression into `output` keeps its things."""
    return output.with_name(f"{output.name}.compress")


def _stamp(path: Path) -> list[int]:
    """What a finished output is known by."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
