"""Ids for calls that came without one, or with one that the conversation has already."""

from __future__ import annotations

from collections.abc import Collection


def fresh_id(wanted: str, taken: Collection[str]) -> str:
    """`wanted`; where that is empty or taken, nine letters and digits, since Mistral takes no others."""
    number = len(taken)
    while not wanted or wanted in taken:
        wanted, number = f"call{number:05}", number + 1
    return wanted
