"""Which runs a filter of the public API (Mongo's form) lets through."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.wandb_server.records import RunRecord

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda have, want: have == want,
    "$ne": lambda have, want: have != want,
    "$in": lambda have, want: bool(set(have) & set(want)) if isinstance(have, list) else have in want,
    "$regex": lambda have, want: re.search(want, str(have)) is not None,
    "$gt": lambda have, want: have is not None and have > want,
    "$gte": lambda have, want: have is not None and have >= want,
    "$lt": lambda have, want: have is not None and have < want,
    "$lte": lambda have, want: have is not None and have <= want,
}
_PLAIN = {"display_name": "display_name", "displayName": "display_name", "jobType": "job_type"}


def passes(run: RunRecord, state: str, filters: dict[str, Any]) -> bool:
    """Whether `run`, whose state is `state`, matches all of `filters`."""
    return all(_holds(run, state, key, want) for key, want in filters.items())


def _holds(run: RunRecord, state: str, key: str, want: Any) -> bool:
    if key == "$and":
        return all(passes(run, state, each) for each in want)
    if key == "$or":
        return any(passes(run, state, each) for each in want)
    have = _value(run, state, key)
    if isinstance(want, dict):
        return all(_COMPARISONS[name](have, value) for name, value in want.items())
    return have == want or (isinstance(have, list) and want in have)


def _value(run: RunRecord, state: str, key: str) -> Any:
    head, _, rest = key.partition(".")
    if key == "state":
        return state
    if head == "config":
        entry = run.config.get(rest.removesuffix(".value"))
        return entry.get("value") if isinstance(entry, dict) else entry
    if head in ("summary", "summary_metrics"):
        return run.summary.get(rest)
    name = _PLAIN.get(key, key)
    return getattr(run, name) if name in ("name", "display_name", "tags", "group", "job_type") else None
