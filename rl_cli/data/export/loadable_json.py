"""JSON text that `datasets` reads as the value that was written.

It decodes columns of type Json with pandas' ujson, which makes a fraction by multiplying with a power of
ten: 0.7 comes back as 0.7000000000000001, and so do most floats. Another spelling of the same number, such as
70e-2, is read right by it, as by every other parser. Whole numbers of more than 64 bits it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any

from rl_cli.core.json_text import to_json
from rl_cli.data.errors import Unconvertible

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?')
MOST_ZEROS = 18
"""Beyond these a spelling's digits fill more than 64 bits."""


def loadable_json(value: Any) -> str:
    """JSON text of a value from JSON.

    Raises:
        Unconvertible: No text of it is read as the value.
    """
    text = to_json(value)
    if _reads_as(text, value):
        return text
    text = _TOKEN.sub(lambda token: _spelled(token[0]), text)
    if not _reads_as(text, value):
        raise Unconvertible("a number that loaders of data sets cannot read, of more than 64 bits for one")
    return text


def _reads_as(text: str, value: Any) -> bool:
    from pandas.io.json import ujson_loads

    try:
        return bool(ujson_loads(text) == value)
    except ValueError:
        return False


@lru_cache(4096)
def _spelled(token: str) -> str:
    """A number's spelling that is read right; another token as it is."""
    if token.startswith('"') or not re.search("[.eE]", token):
        return token
    return next((text for text in _spellings(token) if _reads_as(text, float(token))), token)


def _spellings(token: str) -> Iterator[str]:
    """Ways to write the same number: as it is, then as a whole number times a power of ten."""
    yield token
    sign, digits, exponent = Decimal(token).as_tuple()
    whole = "".join(map(str, digits))
    for zeros in range(MOST_ZEROS):
        yield f"{'-' * sign}{whole}{'0' * zeros}e{int(exponent) - zeros}"
