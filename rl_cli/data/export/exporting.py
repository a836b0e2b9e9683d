"""An export from its first row to the finished file: read, mask, leave out duplicates, shape, write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from rl_cli.core.errors import BadUsage
from rl_cli.core.files import write_json
from rl_cli.data.errors import Unconvertible
from rl_cli.data.export.atif import VERSION, to_atif
from rl_cli.data.export.canonical_columns import to_columns
from rl_cli.data.export.card import CARD, dataset_card
from rl_cli.data.export.containers import Container, JsonFolder, JsonLines, ParquetFile, ParquetFolder
from rl_cli.data.export.output import ABOUT, new_output
from rl_cli.data.export.schema import CANONICAL, SHAREGPT, TRL, Columns
from rl_cli.data.export.sharegpt import to_sharegpt
from rl_cli.data.export.source import OnBadLine, Source
from rl_cli.data.export.trl import to_trl
from rl_cli.data.hygiene.duplicates import Duplicates
from rl_cli.data.hygiene.masking import Masker

Format = Literal["trl", "sharegpt", "parquet", "hf", "atif"]
FORMATS: tuple[Format, ...] = get_args(Format)
LINES = (".jsonl", ".json", ".ndjson")
PARQUET = ".parquet"

_SHAPES: dict[Format, tuple[Callable[[dict[str, Any]], dict[str, Any]], Columns | None]] = {
    "trl": (to_trl, TRL),
    "sharegpt": (to_sharegpt, SHAREGPT),
    "parquet": (to_columns, CANONICAL),
    "hf": (to_columns, CANONICAL),
    "atif": (to_atif, None),
}


@dataclass
class Report:
    """What became of the rows: read = written + duplicates + left_out."""

    source: str
    output: str
    format: str
    read: int = 0
    written: int = 0
    bad_lines: int = 0
    """Lines of the source that are no rows; told of one by one."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Why the format cannot say a row -> how many."""
    duplicates: Counter[str] = field(default_factory=Counter)
    """`exact`, `near`."""
    masked: Counter[str] = field(default_factory=Counter)
    """`secret`, or a kind of personal data -> how often."""

    def to_dict(self) -> dict[str, Any]:
        return {
            name: dict(value) if isinstance(value, Counter) else value for name, value in vars(self).items()
        }


def export(
    source: Source,
    format_: Format,
    output: Path,
    masker: Masker,
    duplicates: Duplicates | None,
    on_bad: OnBadLine,
    force: bool = False,
) -> Report:
    """Exports the rows of a source; the output is there whole or not at all.

    Args:
        source: Canonical rows.
        format_: What to make of them.
        output: `.parquet` and `.jsonl` are files, a name without one of these a folder; `parquet` is always a
            file, `hf` always a folder.
        masker: What is masked.
        duplicates: Leaves out rows that were there before; None: nothing is.
        on_bad: Told of each line that is no row.
        force: Replace what is there.

    Raises:
        BadUsage: The output is taken or does not fit the format, or there is no row to export.
        RlCliError: It cannot be read or written.
    """
    shape, columns = _SHAPES[format_]
    as_folder = _is_folder(format_, output)
    report = Report(source.name, str(output), format_, masked=masker.counts)
    if duplicates:
        report.duplicates = duplicates.counts

    def bad(number: int, reason: str) -> None:
        report.bad_lines += 1
        on_bad(number, reason)

    with new_output(output, folder=as_folder, force=force) as path:
        with _container(format_, output, path, columns) as container:
            for row in source.rows(bad):
                report.read += 1
                row = masker.masked(row)
                try:
                    made = shape(row)
                    if duplicates and not duplicates.is_new(row["messages"]):
                        continue
                    container.write(made)
                    report.written += 1
                except Unconvertible as reason:
                    report.left_out[str(reason)] += 1
        if not report.written:
            raise BadUsage(f"there is no row to export in {source.name}", _why_none(report))
        if as_folder:
            about = {"format_version": VERSION} if format_ == "atif" else {}
            write_json(path / ABOUT, {**report.to_dict(), "output": output.name, **about})
            if columns:
                (path / CARD).write_text(dataset_card(format_, columns, report.written), "utf-8")
    return report


def _is_folder(format_: Format, output: Path) -> bool:
    suffix = output.suffix.lower()
    if format_ == "hf" and suffix in (*LINES, PARQUET):
        raise BadUsage(f"a data set for 'datasets' is a folder, not {output.name}", "leave out the suffix")
    if format_ == "atif" and suffix == PARQUET:
        raise BadUsage("ATIF is JSON", "name a .jsonl file, or a folder")
    if format_ == "parquet" and suffix in LINES:
        raise BadUsage(f"{output.name} is no name for a Parquet file", f"name a {PARQUET} file")
    return format_ == "hf" or (format_ != "parquet" and suffix not in (*LINES, PARQUET))


def _container(format_: Format, output: Path, path: Path, columns: Columns | None) -> Container:
    if format_ != "parquet" and output.suffix.lower() in LINES:
        return JsonLines(path, columns)
    if columns is None:
        return JsonFolder(path)
    return ParquetFile(path, columns) if not _is_folder(format_, output) else ParquetFolder(path, columns)


def _why_none(report: Report) -> str:
    if not report.read:
        return f"none of its {report.bad_lines} lines is a row" if report.bad_lines else "it is empty"
    return "; ".join(f"{count}: {why}" for why, count in report.left_out.most_common(3))
