"""The sessions in RL_CLI_HOME: beginning one, finding one, listing them."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from rl_cli.agent.session_file import SessionFile, read_events
from rl_cli.core.errors import BadUsage, did_you_mean
from rl_cli.core.files import open_regular
from rl_cli.core.handwritten import short

TURN = b'"kind": "message", "message": {"role": "user"'


@dataclass(frozen=True)
class SessionInfo:
    """What a list shows of a session."""

    id: str
    path: Path
    model: str
    started: str
    """ISO 8601, UTC; "" where the first line cannot be read."""
    changed: float
    """Seconds since the epoch."""
    turns: int
    title: str
    """The first request."""


def new_session(home: Path, model: str) -> SessionFile:
    """Begins a session and takes its lock. It is there for others once something was recorded."""
    folder = home / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        path = folder / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}.jsonl"
        if not path.exists() and not path.with_name(f".{path.stem}.lock").exists():
            break
    return SessionFile(path, model)


def open_session(home: Path, name: str) -> SessionFile:
    """Goes on with a session: reads it and takes its lock.

    Args:
        home: RL_CLI_HOME.
        name: See `find_session`.

    Raises:
        BadUsage: There is no such session, or another process has it open.
    """
    return SessionFile(find_session(home, name))


def find_session(home: Path, name: str) -> Path:
    """The file of a session.

    Args:
        home: RL_CLI_HOME.
        name: Its id, the beginning of one, or "latest" for the one that was changed last.

    Raises:
        BadUsage: None or several are meant.
    """
    if not name:
        raise BadUsage("no session is named", "its id, a beginning of it, or 'latest': rl-cli sessions list")
    paths = _newest_first(home)
    if not paths:
        raise BadUsage("there are no sessions yet", 'begin one: rl-cli chat, or rl-cli "train a GSM8K model"')
    if name == "latest":
        return next((path for path in paths if os.access(path, os.R_OK)), paths[0])
    exact = [path for path in paths if path.stem == name]
    found = exact or [path for path in paths if path.stem.startswith(name)]
    if not found:
        hint = f"rl-cli sessions list shows them; {did_you_mean(name, [path.stem for path in paths[:5]])}"
        raise BadUsage(f"there is no session '{short(name, 100)}'", hint)
    if len(found) > 1:
        ids = ", ".join(path.stem for path in found[:5])
        raise BadUsage(f"'{short(name, 100)}' is the beginning of {len(found)} sessions", f"which of: {ids}")
    return found[0]


def list_sessions(home: Path, limit: int | None = None) -> list[SessionInfo]:
    """The sessions, the one that was changed last first; those that cannot be read are left out."""
    readable = (info for path in _newest_first(home) if (info := _info(path)))
    return list(islice(readable, limit))


def _newest_first(home: Path) -> list[Path]:
    """The regular files, and links to such; somebody may have put anything else there."""
    found = []
    for path in (home / "sessions").glob("*.jsonl"):
        with suppress(OSError, UnicodeError):  # it was deleted meanwhile; it has a name that cannot be shown
            facts, _ = path.stat(), path.stem.encode()
            if stat.S_ISREG(facts.st_mode):
                found.append((facts.st_mtime_ns, path.stem, path))
    return [path for _, _, path in sorted(found, reverse=True)]


def _info(path: Path) -> SessionInfo | None:
    """None where the file cannot be read."""
    try:
        return _read_info(path)
    except OSError:
        return None


def _read_info(path: Path) -> SessionInfo:
    model, started, title = "", "", ""
    for event in read_events(path):
        if event.get("kind") == "session":
            started = str(event.get("time", ""))
        if event.get("kind") in ("session", "model", "message"):
            model = str(event.get("model") or model)
        message = event.get("message")
        if event.get("kind") == "message" and isinstance(message, dict) and message.get("role") == "user":
            title = str(message.get("content"))
            break
    turns = sum(line.count(TURN) for line in _lines(path))
    return SessionInfo(path.stem, path, model, started, path.stat().st_mtime, turns, title)


def _lines(path: Path) -> Iterator[bytes]:
    with open_regular(path) as file:
        yield from file
