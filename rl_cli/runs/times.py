"""Times as the files of a run hold them: ISO 8601 in UTC with milliseconds, e.g. 2026-03-01T12:00:00.250Z."""

from __future__ import annotations

import time
from datetime import UTC, datetime

MOST_AHEAD_SECONDS = 86_400.0
"""How far the clock of another machine may be ahead of ours."""


def now_text() -> str:
    return time_text(time.time())


def time_text(seconds: float) -> str:
    """Unix time as text."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(text: str | None) -> float | None:
    """Unix time of such a text; None for None and for what is no time."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def local_text(seconds: float | None, digits: int = 16) -> str | None:
    """Unix time for people: `2026-03-01 13:00`, as this machine's clock on the wall; see `local_zone`."""
    if seconds is None:
        return None
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))[:digits]


def local_zone(seconds: float | None = None) -> str:
    """The zone of such times, e.g. `CET`."""
    return time.strftime("%Z", time.localtime(seconds))


def since(text: str | None, until: str | None = None) -> float | None:
    """Seconds from `text` to `until` (default: now); None if one is no time.

    Never negative: a clock that was set back says nothing of how long something took.
    """
    start, end = seconds_of(text), seconds_of(until) if until else time.time()
    return None if start is None or end is None else max(0.0, end - start)


def is_ahead(text: str | None) -> bool:
    """Whether a time lies further ahead than the clocks of two machines differ, so that it was made up."""
    seconds = seconds_of(text)
    return seconds is not None and seconds - time.time() > MOST_AHEAD_SECONDS


def duration(seconds: float | None) -> str:
    """For people: `42 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds is None:
        return "?"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
