"""JSON that every reader takes, told from what only some take."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from rl_cli.data.errors import NotJson

DEEPEST = 100
"""Levels of nesting: the parsers that load data sets stop at 128, and a block adds one."""

_NESTING = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def strict_json(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: It is none, or has NaN, numbers that no float or no integer of 4,300 digits holds, half a
            surrogate pair, or more than DEEPEST levels.
    """
    if too_deep(text):
        raise ValueError(f"nested more than {DEEPEST} levels deep")
    if repair_escapes(text) != text:
        raise ValueError("half a surrogate pair")
    return json.loads(text, parse_constant=refuse, parse_float=_finite)


def repair_escapes(text: str) -> str:
    """JSON text with escapes of U+FFFD for those of halves of surrogate pairs."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda found: r"\ufffd" if found[1] else found[0], text)


def too_deep(text: str, levels: int = DEEPEST) -> bool:
    """Whether a JSON text has more than so many levels."""
    if text.count("[") + text.count("{") <= levels:
        return False
    depth = 0
    for found in _NESTING.finditer(text):
        if found[0] in "[{":
            depth += 1
            if depth > levels:
                return True
        elif found[0] in "]}":
            depth -= 1
    return False


def require_json(**fields: Any) -> str:
    """JSON text of these fields, from JSON.

    Raises:
        NotJson: There is a NaN or an infinity, which Python reads and JSON lacks, or too many levels to
            write.
    """
    try:
        return json.dumps(fields, allow_nan=False, default=str)
    except ValueError:
        where = next(_not_finite(fields), "a number")
        raise NotJson(
            f"{where} is NaN or infinite, which JSON lacks: write null, a finite number or a text"
        ) from None
    except RecursionError:
        raise NotJson(f"{', '.join(fields)}: lists or objects nested too deeply") from None


def _not_finite(fields: dict[str, Any]) -> Iterator[str]:
    """Where such numbers stand, as in `tools[0].parameters.limit`."""
    found = list(fields.items())
    while found:
        where, value = found.pop()
        if isinstance(value, float) and not math.isfinite(value):
            yield where
        elif isinstance(value, dict):
            found += [(f"{where}.{key}", inner) for key, inner in value.items()]
        elif isinstance(value, list):
            found += [(f"{where}[{at}]", inner) for at, inner in enumerate(value)]


def refuse(constant: str) -> NoReturn:
    """For `parse_constant`: NaN and infinities are not JSON."""
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is too large for a float")
    return number
