"""A log's structured lines as a person reads them: time, level and text, then the other fields.

Structured is a line that ends with one JSON object, or with a dict as Python shows it, alone or after words
and a colon. Nothing is ever evaluated; what is longer than LONGEST characters is left as it is.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.json_text import load_json, to_json
from rl_cli.runs.times import local_text, local_zone

LONGEST = 64 * 1024
SHOWN = 300
"""Characters of a field; of the text four times as many."""
TIMES = ("time", "timestamp", "@timestamp", "ts", "asctime", "datetime")
LEVELS = ("level", "levelname", "severity", "lvl", "log_level")
TEXTS = ("message", "msg", "text", "event", "body")
NUMBERS = {"nan": math.nan, "inf": math.inf, "NaN": math.nan, "Infinity": math.inf}
_UNITS = ((1e8, 1e10, 1.0), (1e11, 1e13, 1e3), (1e14, 1e16, 1e6), (1e17, 1e19, 1e9))
"""Unix times: from, below, and how many of them a second has."""
_STRUCTURED = re.compile(r"(|[^{]*:[ \t]+)(\{.*\})\s*", re.DOTALL)


def fields_of(line: str) -> tuple[str, dict[str, Any]] | None:
    """What stands before the fields of a structured line, and these; None for any other line."""
    found = _STRUCTURED.fullmatch(line) if len(line) <= LONGEST else None
    fields = _object(found[2]) if found else None
    return (found[1].rstrip(" \t:"), fields) if found and fields else None


def readable(line: str) -> str:
    """The line for a person: a structured one on one line without its marks; any other one as it is."""
    found = fields_of(line)
    if found is None:
        return line
    before, left = found[0], dict(found[1])
    when, level, text = (_taken(left, names) for names in (TIMES, LEVELS, TEXTS))
    said = ": ".join(filter(None, [before, "" if text is None else _value(text, 4 * SHOWN)]))
    rest = ", ".join(f"{one_line(name, SHOWN)} {_value(value)}" for name, value in left.items())
    told = " ".join(filter(None, [_moment(when), "" if level is None else _value(level).upper(), said]))
    return "  ".join(filter(None, [told, rest]))


def as_object(line: str) -> dict[str, Any]:
    """The line as one object: its fields as they are, and as `text` what stands before them."""
    found = fields_of(line)
    if found is None:
        return {"text": line}
    before, fields = found
    return {"text": before, **fields} if before else fields


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = load_json(text)
    except ValueError:
        value = _python(text)
    right = isinstance(value, dict) and all(isinstance(name, str) for name in value)
    return value if right else None


def _python(text: str) -> Any:
    """A literal as Python shows it, NaN and infinities too; None for what is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            return ast.literal_eval(_Numbers().visit(ast.parse(text, mode="eval")))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


class _Numbers(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(NUMBERS[node.id]) if node.id in NUMBERS else node


def _taken(fields: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The first of these fields that says something, taken out."""
    name = next((name for name in names if isinstance(fields.get(name), str | int | float)), None)
    return None if name is None else fields.pop(name)


def _moment(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        for low, high, unit in _UNITS:
            if low <= value < high:
                return f"{local_text(value / unit, 19)} {local_zone(value / unit)}"
    return "" if value is None else _value(value)


def _value(value: Any, most: int = SHOWN) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping | list | tuple | set):
        return one_line(to_json(value), most)
    return one_line(str(value), most)
