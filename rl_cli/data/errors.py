"""Why a conversation cannot be converted."""

from __future__ import annotations


class Unconvertible(ValueError):
    """Its text is the reason, for the row's `rejected`."""


class NotJson(Unconvertible):
    """It holds what no line can: its text says where, and what to write instead."""
