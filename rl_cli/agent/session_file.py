"""The record of a conversation: sessions/<id>.jsonl, one event a line, appended as it happens.

Kinds of events (`kind`), each with `time`:
    session     id, model: the first line
    model       model: who answers from here on
    system      content: the system prompt from here on
    message     message: of the person or the model; `by` where rl-cli itself wrote it; the first of a turn
                has also model, base_url: who answers, once more, should the lines that said so be lost
    partial     text: what the model had said of a message that never became complete; it is not told again
    call        call: it is about to run (on the disk before a call that executes or spends does)
    result      call_id, name, ok, seconds, content
    state       state: the draft config, the run, ... of the session
    compaction  summary, digest, kept: what older messages were replaced by, and the messages that stay
    notice      text: for a person
    end         stop, error: of a turn
One process writes a session at a time. Not covered: two machines on one network file system.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl_cli.agent.events import sound_event
from rl_cli.agent.history import History
from rl_cli.core.errors import BadUsage
from rl_cli.core.files import append_jsonl, read_jsonl, write_atomic
from rl_cli.core.redaction import redacted_json

if TYPE_CHECKING:
    from filelock import BaseFileLock


class SessionFile:
    """A session that is open for writing. A crash loses at most the line that was being written."""

    def __init__(self, path: Path, model: str | None = None) -> None:
        """Takes the session's lock and reads what is there.

        Args:
            path: Its file. A new one is created with the first event, so that nobody finds an empty session.
            model: Who answers, in a new session.

        Raises:
            BadUsage: Another process has it open.
        """
        self.id = path.stem
        self.path = path
        self.folder = path.with_suffix("")
        """For what is too long for the conversation; created when needed."""
        self._lock = _lock(path)
        self.history = History()
        for event in read_events(path):
            self.history.apply(event)
        self._first = None if model is None else _event("session", id=self.id, model=model)
        if self._first:
            self.history.apply(self._first)

    def record(self, kind: str, fsync: bool = False, **fields: Any) -> None:
        """Appends one event, and takes it into the history.

        Args:
            kind: See the module.
            fsync: Return only once it is on the disk, with all that came before it.
            fields: The event's own; they must be what JSON can hold.
        """
        if self._first:
            append_jsonl(self.path, self._first)
            self._first = None
        elif not _has_content(self.path):
            self._write_again()
        event = _event(kind, **fields)
        append_jsonl(self.path, event, fsync=fsync)
        self.history.apply(event)

    def _write_again(self) -> None:
        """What we know of the conversation, where somebody deleted or emptied the file meanwhile."""
        told = self.history.as_events()
        rows = [_event("session", id=self.id, model=self.history.model), *(_event(**row) for row in told)]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self.path, "".join(redacted_json(row) + "\n" for row in rows).encode())

    def close(self) -> None:
        """Gives the lock back. Closing twice does no harm."""
        self._lock.release()


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a session's file; lines that a crash tore, or somebody spoiled, are passed over."""
    return (sound for event in read_jsonl(path) if (sound := sound_event(event)) is not None)


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def _event(kind: str, **fields: Any) -> dict[str, Any]:
    time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"time": time, "kind": kind, **fields}


def _lock(path: Path) -> BaseFileLock:
    import filelock

    lock = filelock.FileLock(path.with_name(f".{path.stem}.lock"), timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout as error:
        hint = "end it there, or begin a new conversation"
        raise BadUsage(f"session {path.stem} is open in another process", hint) from error
    return lock
