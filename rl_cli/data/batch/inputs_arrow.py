"""Rows of Parquet files, of saved datasets, of datasets on the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.core.extras import install_command
from rl_cli.data.batch.inputs_text import Rows
from rl_cli.data.hub import hub_trouble, quiet_hub

ROWS_AT_ONCE = 64
"""That are held as Python values."""


def parquet_rows(path: Path) -> Rows:
    """The rows of a Parquet file; fields without a value are left out.

    Raises:
        BadUsage: It is none, or pyarrow is not installed.
    """
    return _shards([path])


def folder_rows(path: Path) -> Rows:
    """The rows of a folder: of its Parquet files by their names, or of what `save_to_disk` has written.

    Raises:
        BadUsage: There is neither, or a package is not installed.
    """
    if shards := sorted(path.glob("*.parquet")):
        return _shards(shards)
    if (path / "dataset_info.json").exists() or (path / "dataset_dict.json").exists():
        return _saved(path)
    raise BadUsage(f"{path} holds neither Parquet files nor a saved dataset", "name the file that is meant")


def dataset_rows(name: str, config: str | None, split: str) -> Rows:
    """The rows of a dataset on the hub, as they arrive.

    Raises:
        BadUsage: datasets is not installed.
        WorkFailed: The hub does not give it: no network, no such dataset, another split.
    """
    load = _imported("datasets").load_dataset
    quiet_hub()
    number = 0
    try:
        for number, row in enumerate(load(name, config, split=split, streaming=True), 1):
            yield f"row {number}", _given(row)
    except Exception as error:  # whatever the hub, the network and the dataset's own files come up with
        where = f"behind row {number}" if number else f"split {split}"
        why, hint = hub_trouble(error)
        raise WorkFailed(f"dataset {name} cannot be read ({where}): {why}", hint) from error


def _shards(paths: Sequence[Path]) -> Rows:
    parquet = _imported("pyarrow.parquet")
    number = 0
    for path in paths:
        try:
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(ROWS_AT_ONCE):
                    for row in batch.to_pylist():
                        number += 1
                        yield f"row {number}", _given(row)
        except (ValueError, OSError) as error:  # one of them is what pyarrow raises for damage
            raise BadUsage(f"{path} is no whole Parquet file: {one_line(str(error), 200)}") from error


def _saved(path: Path) -> Rows:
    """Of several splits, `train`."""
    datasets = _imported("datasets")
    try:
        found = datasets.load_from_disk(str(path))
    except (ValueError, OSError) as error:
        raise BadUsage(f"{path} is no whole dataset: {one_line(str(error), 200)}") from error
    if isinstance(found, datasets.DatasetDict):
        if "train" not in found:
            raise BadUsage(f"{path} has no split train", f"name the folder of one: {', '.join(found)}")
        found = found["train"]
    for number, row in enumerate(found, 1):
        yield f"row {number}", _given(row)


def _given(value: Any) -> Any:
    """A value as it was before its columns were filled: structs without the fields that have none."""
    if isinstance(value, dict):
        return {name: _given(held) for name, held in value.items() if held is not None}
    if isinstance(value, list):
        return [_given(held) for held in value]
    return value


def _imported(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise BadUsage(f"this input needs {package}: not installed", install_command("data")) from error
