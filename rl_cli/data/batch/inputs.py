"""Rows of an input, one at a time, whatever it is: JSONL, JSON, CSV, Parquet, a Hugging Face dataset."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from rl_cli.core.errors import BadUsage
from rl_cli.core.files import explain_os_error
from rl_cli.core.handwritten import short
from rl_cli.data.batch.inputs_arrow import dataset_rows, folder_rows, parquet_rows
from rl_cli.data.batch.inputs_text import Rows, csv_rows, json_rows, jsonl_rows, tsv_rows

READERS: dict[str, Callable[[Path], Rows]] = {
    ".jsonl": jsonl_rows,
    ".ndjson": jsonl_rows,
    ".json": json_rows,
    ".csv": csv_rows,
    ".tsv": tsv_rows,
    ".parquet": parquet_rows,
}
"""What a file's name ends with, and who reads it."""
DATASET = re.compile(r"([A-Za-z0-9][\w.-]*/[\w.-]+)(?::([\w.-]+))??(?::([\w.-]+))?")
"""OWNER/NAME, OWNER/NAME:SPLIT or OWNER/NAME:CONFIG:SPLIT."""


def rows(source: str) -> Rows:
    """The rows of an input, in its order, in constant memory.

    Args:
        source: A file, a folder with Parquet files or a saved dataset, or the name of a dataset on the
            Hugging Face hub (see DATASET; its split is train where none is named).

    Raises:
        BadUsage: There is no such input, its form is unknown or damaged, or it needs a package.
        WorkFailed: The hub does not give it.
    """
    path = Path(source).expanduser()
    try:
        if path.is_dir():
            yield from folder_rows(path)
        elif path.exists():
            yield from _reader(path)(path)
        elif (named := DATASET.fullmatch(source)) and path.suffix.lower() not in READERS:
            yield from dataset_rows(named[1], named[2], named[3] or "train")
        else:
            raise BadUsage(
                f"the input {short(source, 200)} does not exist", "give a file, a folder or OWNER/NAME"
            )
    except OSError as error:
        raise explain_os_error(error, path) from error
    except UnicodeDecodeError as error:
        raise BadUsage(f"{path} is not UTF-8 text") from error
    except ValueError as error:  # a NUL in the path
        raise BadUsage(f"the input {short(source, 200)} cannot be read: {error}") from error


def _reader(path: Path) -> Callable[[Path], Rows]:
    if path.suffix.lower() in READERS:
        return READERS[path.suffix.lower()]
    raise BadUsage(f"{path}: its name does not say in which form it is", f"known are {', '.join(READERS)}")
