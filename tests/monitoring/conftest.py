from __future__ import annotations

from tests.runs.conftest import runs

__all__ = ["runs"]
