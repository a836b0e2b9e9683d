"""What holds an export's rows: lines of JSON, a Parquet file, a folder of either.

Each takes rows one at a time and keeps no more than one group of them in memory.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, Self

from rl_cli.core.json_text import to_json
from rl_cli.data.export.lines import as_line
from rl_cli.data.export.output import ABOUT
from rl_cli.data.export.schema import Columns, arrow_schema, as_record, as_table

if TYPE_CHECKING:
    import pyarrow.parquet

GROUP_ROWS = 1000
GROUP_CHARACTERS = 8 * 2**20
"""Of JSON text; whichever comes first ends a row group."""
SHARD_BYTES = 500 * 10**6
"""A folder's next file begins after so much."""


class Container(Protocol):
    """Takes rows; is complete once its block has ended."""

    def write(self, row: dict[str, Any]) -> None:
        """Raises Unconvertible where the row cannot be said in this form."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class JsonLines:
    """A file with one row a line: as it is, or in the form of `lines` where it has columns."""

    def __init__(self, path: Path, columns: Columns | None = None) -> None:
        self._path, self._columns = path, columns
        self._is_first = True

    def __enter__(self) -> Self:
        self._file: BinaryIO = self._path.open("xb")
        return self

    def write(self, row: dict[str, Any]) -> None:
        line = row if self._columns is None else as_line(row, self._columns, self._is_first)
        self._file.write(to_json(line).encode() + b"\n")
        self._is_first = False

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._file.close()


class ParquetFile:
    """A file with columns."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self._path, self._columns = path, columns
        self._group: list[dict[str, Any]] = []
        self._characters = 0

    def __enter__(self) -> Self:
        import pyarrow.parquet

        self._file: BinaryIO = self._path.open("xb")  # so that errors are Python's, with their numbers
        schema = arrow_schema(self._columns)
        self._writer: pyarrow.parquet.ParquetWriter = pyarrow.parquet.ParquetWriter(
            self._file, schema, compression="zstd"
        )
        return self

    @property
    def size(self) -> int:
        """Bytes that are written."""
        return self._file.tell()

    def write(self, row: dict[str, Any]) -> None:
        record = as_record(row, self._columns)
        self._group.append(record)
        self._characters += sum(_characters(value) for value in record.values())
        if len(self._group) >= GROUP_ROWS or self._characters >= GROUP_CHARACTERS:
            self._flush()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._flush()
            self._writer.close()
        except OSError:
            if kind is None:  # else what went wrong first is told: the disk is full for the end too
                raise
        finally:
            self._file.close()

    def _flush(self) -> None:
        if self._group:
            self._writer.write_table(as_table(self._group, self._columns))
        self._group, self._characters = [], 0


class ParquetFolder:
    """A folder with `data/train-NNNNN.parquet`, all of one schema."""

    def __init__(self, folder: Path, columns: Columns) -> None:
        self._folder, self._columns = folder / "data", columns
        self._shards = 0

    def __enter__(self) -> Self:
        self._folder.mkdir()
        self._begin()
        return self

    def write(self, row: dict[str, Any]) -> None:
        if self._shard.size > SHARD_BYTES:
            self._shard.__exit__(None, None, None)
            self._begin()
        self._shard.write(row)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shard.__exit__(kind, error, trace)

    def _begin(self) -> None:
        path = self._folder / f"train-{self._shards:05}.parquet"
        self._shard = ParquetFile(path, self._columns).__enter__()
        self._shards += 1


class JsonFolder:
    """A folder with one JSON file a row, named by its `trajectory_id`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._taken = Counter([Path(ABOUT).stem])

    def __enter__(self) -> Self:
        return self

    def write(self, row: dict[str, Any]) -> None:
        name = re.sub(r"[^A-Za-z0-9._-]", "_", row["trajectory_id"]).lstrip(".")[:100] or "row"
        while True:  # `a` for the second time may be `a.2` for the first
            self._taken[name.lower()] += 1  # some file systems know no case
            number = f".{self._taken[name.lower()]}" if self._taken[name.lower()] > 1 else ""
            path = self._folder / f"{name}{number}.json"
            if not path.exists():
                break
        path.write_text(to_json(row, indent=2) + "\n", "utf-8")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        pass


def _characters(value: Any) -> int:
    if isinstance(value, list):
        return sum(len(str(each)) for each in value)
    return len(value) if isinstance(value, str) else 8
