"""Runs of the tracking tests are ended after each."""

from tests.runs.conftest import runs

__all__ = ["runs"]
