"""JSON text that `datasets` reads as the value that was written.

It decodes columns of type Json with pandas' ujson, which makes a fraction by multiplying with a power of
ten: 0.7 comes back as 0.7000000000000001, and so do most floats. Another spelling of the same number, such as
70e-2, is read right by it, as by every other parser. Whole numbers of more than 64 bits it refuses.
Not covered: numbers nearer to 0 than 1e-290, whose last digits it may change.
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
TOO_LARGE = "a whole number of more than 64 bits, which loaders of data sets refuse"
MOST_DIGITS = 19
"""More of them fill more than 64 bits."""


def loadable_json(value: Any) -> str:
    """JSON text of a value from JSON.

    Raises:
        Unconvertible: There is none.
    """
    text = to_json(value)
    try:
        as_it_is = _read(text) == value
    except ValueError:
        raise Unconvertible(TOO_LARGE) from None
    return text if as_it_is else _TOKEN.sub(lambda token: _spelled(token[0]), text)


def _read(text: str) -> Any:
    from pandas.io.json import ujson_loads

    return ujson_loads(text)


@lru_cache(4096)
def _spelled(token: str) -> str:
    """A number's spelling that is read right; another token as it is."""
    if token.startswith('"') or not re.search("[.eE]", token):
        return token
    return next((text for text in _spellings(token) if _read(text) == float(token)), token)


def _spellings(token: str) -> Iterator[str]:
    """Ways to write the same number: as it is, with zeros behind it, with its point elsewhere."""
    yield token
    negative, digits, exponent = Decimal(token).as_tuple()
    sign, whole, power = "-" * negative, "".join(map(str, digits)), int(exponent)
    for zeros in range(MOST_DIGITS - len(whole)):
        yield f"{sign}{whole}{'0' * zeros}e{power - zeros}"
    for point in range(1, len(whole)):
        yield f"{sign}{whole[:point]}.{whole[point:]}e{power + len(whole) - point}"
