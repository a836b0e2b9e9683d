"""Python values to JSON text that every reader accepts, and that always can be encoded as UTF-8."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any


def to_json(value: Any, indent: int | None = None) -> str:
    """JSON text of `value`.

    NaN and infinities, which JSON lacks, become the strings "NaN", "Infinity", "-Infinity". Lone surrogates
    become U+FFFD. Paths, enums, sets, bytes, dataclasses, pydantic models and array scalars are written as
    what they stand for; anything else as its `str()`.

    Raises:
        RecursionError: `value` is nested too deeply, or contains itself.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, default=_stand_in)
    except (
        ValueError,
        TypeError,
    ):  # NaN, a key that is no string, an integer of thousands of digits
        text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, indent=indent)
    return repair_surrogates(text)


def row_json(row: dict[str, Any]) -> bytes:
    """The same in UTF-8 and without spaces, for rows of figures and text only: an eighth of the time."""
    import pydantic_core  # 40 ms: not at every start

    try:
        return pydantic_core.to_json(row, inf_nan_mode="strings")
    except pydantic_core.PydanticSerializationError:  # a lone surrogate
        return to_json(row).encode()


def parse_json(text: str) -> Any:
    """What `json.loads` gives, and raises, in a fifth of the time: for many rows."""
    import pydantic_core  # 40 ms: not at every start

    try:
        return pydantic_core.from_json(text, cache_strings="keys")
    except ValueError:  # lone surrogates, which `json` takes, and what is no JSON at all
        return load_json(text)


def load_json(text: str | bytes) -> Any:
    """What `json.loads` gives; ValueError for whatever is no JSON, what is nested too deeply included."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def repair_surrogates(text: str) -> str:
    """`text` with split surrogate pairs joined and lone halves replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def plain(value: Any) -> Any:
    """`value` in terms of dict, list, str, int, finite float, bool and None only."""
    if value is None or (isinstance(value, str | bool) and not isinstance(value, Enum)):
        return value
    if isinstance(value, int) and not isinstance(value, Enum):
        return int(value) if value.bit_length() < 10_000 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {k if isinstance(k, str) else str(plain(k)): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return plain(_stand_in(value))


def _stand_in(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    for method in ("model_dump", "tolist"):  # pydantic models; numpy and torch values
        if callable(getattr(value, method, None)) and not isinstance(value, type):
            return getattr(value, method)()
    return str(value)
