"""The card of an exported data set: README.md, which tells `datasets` where its files are."""

from __future__ import annotations

from rl_cli.data.export.schema import Columns

CARD = "README.md"
_TEXT = """\
---
configs:
- config_name: default
  data_files:
  - split: train
    path: data/*.parquet
---

# {format} data set

{rows} rows, exported by rl-cli. `datasets.load_dataset("FOLDER")` loads it; columns of type Json come
decoded. Other readers of Parquet see these as JSON text. What it was made from is in export.json.

| column | type |
|---|---|
{columns}
"""
_TYPES = {
    "text": "string",
    "whole": "int64",
    "number": "float64",
    "switch": "bool",
    "texts": "list of strings",
    "json": "Json",
    "jsons": "list of Json",
    "turns": "list of {from, value}",
}


def dataset_card(format_: str, columns: Columns, rows: int) -> str:
    listed = "\n".join(f"| {name} | {_TYPES[kind]} |" for name, kind in columns.items())
    return _TEXT.format(format=format_, rows=rows, columns=listed)
