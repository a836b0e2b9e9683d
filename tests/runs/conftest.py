from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs.kit import end_all


@pytest.fixture
def runs(home: Path) -> Iterator[Path]:
    """A home folder whose runs are ended after the test."""
    yield home
    end_all(home)
