"""Secrets masked where they stand in files that others have written."""

from __future__ import annotations

import os
from pathlib import Path

from rl_cli.core.redaction import MASK
from rl_cli.core.secret_search import spans_of

BLOCK = 4 * 1024 * 1024
OVERLAP = 64 * 1024
"""A secret longer than this may be missed where two blocks meet."""


def mask_file(path: Path) -> int:
    """Overwrites the secrets in a file with a mask of the same length, so that readers keep their place.

    Returns:
        How many were found.

    Raises:
        OSError: As `open` does.
    """
    found = 0
    descriptor = os.open(path, os.O_RDWR)
    try:
        offset, size = 0, os.fstat(descriptor).st_size
        while offset < size:
            data = os.pread(descriptor, BLOCK, offset)
            text = data.decode("utf-8", "surrogateescape")
            for first, last in spans_of(text):
                at, end = (_bytes_before(text, index) for index in (first, last))
                os.pwrite(descriptor, _mask_of(end - at), offset + at)
                found += 1
            if len(data) < BLOCK:
                break
            offset += BLOCK - OVERLAP
    finally:
        os.close(descriptor)
    return found


def _bytes_before(text: str, index: int) -> int:
    return len(text[:index].encode("utf-8", "surrogateescape"))


def _mask_of(length: int) -> bytes:
    return (MASK.encode() if length >= len(MASK) else b"").ljust(length, b"*")
