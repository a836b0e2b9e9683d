"""The columns of an export, the same whatever its rows hold.

What has a form of its own in each row (messages, tools, metadata) is JSON text in a column of Arrow's type
`arrow.json`: `datasets` gives it back decoded, other readers as text. So no row gets keys that others have.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from rl_cli.data.errors import Unconvertible
from rl_cli.data.export.loadable_json import loadable_json

if TYPE_CHECKING:
    import pyarrow

Kind = Literal["text", "whole", "number", "switch", "texts", "json", "jsons", "turns"]
Columns = Mapping[str, Kind]
"""Name -> kind, in the order of the columns. Every column may be null."""

CANONICAL: Columns = {
    "key": "text",
    "messages": "jsons",
    "tools": "jsons",
    "completed": "switch",
    "usage": "json",
    "cost_usd": "number",
    "model": "text",
    "sampling": "json",
    "seed": "whole",
    "toolsets": "texts",
    "tool_stats": "json",
    "reasoning": "json",
    "score": "number",
    "marks": "texts",
    "metadata": "json",
    "others": "json",
}
"""Of the canonical row; `others` holds the fields that it does not know."""
TRL: Columns = {"key": "text", "messages": "jsons", "tools": "jsons"}
SHAREGPT: Columns = {"key": "text", "conversations": "turns", "system_messages": "jsons"}

_FEATURES: dict[Kind, Any] = {
    "text": {"dtype": "string", "_type": "Value"},
    "whole": {"dtype": "int64", "_type": "Value"},
    "number": {"dtype": "float64", "_type": "Value"},
    "switch": {"dtype": "bool", "_type": "Value"},
    "texts": {"feature": {"dtype": "string", "_type": "Value"}, "_type": "List"},
    "json": {"_type": "Json"},
    "jsons": {"feature": {"_type": "Json"}, "_type": "List"},
    "turns": {
        "feature": {
            "from": {"dtype": "string", "_type": "Value"},
            "value": {"dtype": "string", "_type": "Value"},
        },
        "_type": "List",
    },
}


def arrow_schema(columns: Columns) -> pyarrow.Schema:
    """The schema of the file, with what `datasets` reads of it."""
    features = {name: _FEATURES[kind] for name, kind in columns.items()}
    about = json.dumps({"info": {"features": features}})
    return _schema(columns, "arrow.json").with_metadata({"huggingface": about})


def as_table(records: list[dict[str, Any]], columns: Columns) -> pyarrow.Table:
    """Records of `as_record` as a table of that schema."""
    import pyarrow

    return pyarrow.Table.from_pylist(records, schema=_schema(columns, "text")).cast(arrow_schema(columns))


def as_record(row: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """A row's values as the columns hold them.

    Raises:
        Unconvertible: A value is not of its column's kind; it says which.
    """
    return {name: _held(checked(name, row.get(name), kind), kind) for name, kind in columns.items()}


def checked(name: str, value: Any, kind: Kind) -> Any:
    """The value, which is None or of its kind; of a key that is a whole number, its text.

    Raises:
        Unconvertible: It is of another one.
    """
    if value is None or kind == "json":
        return value
    if kind == "number":
        return _number(name, value)
    if name == "key" and type(value) is int:
        return str(value)
    if kind in ("jsons", "texts", "turns") and not isinstance(value, list):
        raise Unconvertible(f"'{name}' is no list")
    if kind == "texts" and not all(isinstance(each, str) for each in value):
        raise Unconvertible(f"'{name}' is no list of texts")
    if kind == "text" and not isinstance(value, str):
        raise Unconvertible(f"'{name}' is no text")
    if kind == "switch" and not isinstance(value, bool):
        raise Unconvertible(f"'{name}' is neither true nor false")
    if kind == "whole" and (type(value) is not int or not -(2**63) <= value < 2**63):
        raise Unconvertible(f"'{name}' is no whole number of 64 bits")
    return value


def _schema(columns: Columns, free: Literal["arrow.json", "text"]) -> pyarrow.Schema:
    import pyarrow

    text = pyarrow.string()
    free_type = pyarrow.json_() if free == "arrow.json" else text
    types = {
        "text": text,
        "whole": pyarrow.int64(),
        "number": pyarrow.float64(),
        "switch": pyarrow.bool_(),
        "texts": pyarrow.list_(text),
        "json": free_type,
        "jsons": pyarrow.list_(free_type),
        "turns": pyarrow.list_(pyarrow.struct({"from": text, "value": text})),
    }
    return pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])


def _held(value: Any, kind: Kind) -> Any:
    if value is None:
        return None
    if kind == "json":
        return loadable_json(value)
    return [loadable_json(each) for each in value] if kind == "jsons" else value


def _number(name: str, value: Any) -> float:
    try:
        number = float("nan") if isinstance(value, bool | str) else float(value)
    except (TypeError, OverflowError):
        number = float("nan")
    if not math.isfinite(number):
        raise Unconvertible(f"'{name}' is no finite number")
    return number
