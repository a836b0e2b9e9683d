"""Why a conversation cannot be converted."""

from __future__ import annotations


class Unconvertible(ValueError):
    """Its text is the reason, for the row's `rejected`."""
