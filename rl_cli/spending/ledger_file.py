"""The file spending.db: opened, checked, changed in one transaction at a time.

SQLite with a rollback journal that stays (a commit then needs no new blocks, so an amount that is reserved
can still be settled on a disk that has become full). A connection lives for one transaction: nothing is held
between calls, and threads and forked processes need no care.
Not covered: network file systems whose locks do not work.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rl_cli.core.errors import RlCliError, WorkFailed
from rl_cli.core.files import explain_os_error

if TYPE_CHECKING:
    import sqlite3

NAME = "spending.db"
APPLICATION = 0x726C_636C
"""SQLite's application_id of our files: "rlcl"."""
VERSION = 2
BUSY_SECONDS = 30.0
"""How long a transaction waits for those of other processes."""

SCHEMA = """
CREATE TABLE entries (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, state TEXT NOT NULL, time REAL NOT NULL, closed REAL,
    day TEXT NOT NULL, session TEXT, run TEXT, model TEXT,
    dollars REAL NOT NULL, tokens INTEGER NOT NULL, gpu_hours REAL NOT NULL, hours REAL NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, cache_write_tokens INTEGER NOT NULL,
    priced INTEGER NOT NULL, estimated INTEGER NOT NULL,
    least TEXT NOT NULL, owners TEXT NOT NULL, beat REAL NOT NULL,
    requests INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX entries_by_day ON entries (day);
CREATE INDEX entries_by_session ON entries (session);
CREATE INDEX entries_by_run ON entries (run);
CREATE INDEX entries_open ON entries (state) WHERE state = 'reserved';
CREATE TABLE sums (
    scope TEXT, name TEXT, reserved INTEGER,
    dollars INTEGER, tokens INTEGER, gpu_hours INTEGER, hours INTEGER,
    PRIMARY KEY (scope, name, reserved)
) WITHOUT ROWID;
CREATE TABLE told (what TEXT PRIMARY KEY, time REAL NOT NULL);
"""


@contextmanager
def transaction(path: Path, write: bool = True) -> Iterator[sqlite3.Connection]:
    """One transaction, committed at the end unless an exception leaves it.

    Args:
        path: spending.db; made when missing, if `write`.
        write: Take the only right to write, at once. Else the file must exist.

    Raises:
        RlCliError: The file cannot be used: one line that says why.
    """
    import sqlite3

    try:
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
        address = f"{path.absolute().as_uri()}?mode={'rwc' if write else 'rw'}"
        with closing(sqlite3.connect(address, BUSY_SECONDS, isolation_level=None, uri=True)) as db:
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA journal_mode = PERSIST")
            db.execute("PRAGMA temp_store = MEMORY")
            db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                _check(db, path, write)
                yield db
                db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # it may have been rolled back already
                    db.execute("ROLLBACK")
                raise
    except sqlite3.DatabaseError as error:
        raise _explain(error, path) from error
    except OSError as error:
        raise explain_os_error(error, path) from error


@contextmanager
def nothing() -> Iterator[sqlite3.Connection]:
    """What is read where there is no file."""
    import sqlite3

    with closing(sqlite3.connect(":memory:")) as db:
        db.row_factory = sqlite3.Row
        db.executescript(SCHEMA)
        yield db


@contextmanager
def copy_of(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """The same in memory, where it can be changed although the file cannot."""
    import sqlite3

    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        copy.row_factory = sqlite3.Row
        db.backup(copy)
        _bring_up(copy)
        yield copy


def _check(db: sqlite3.Connection, path: Path, write: bool) -> None:
    """Makes the tables of a new file; raises WorkFailed for one that is not ours."""
    application, version = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if (application, version) == (APPLICATION, VERSION):
        return
    if application == APPLICATION and version > VERSION:
        raise WorkFailed(f"{path} was written by a newer rl-cli", "use that one, or another RL_CLI_HOME")
    if application == APPLICATION and version == 1:
        if write:
            _bring_up(db)
        else:
            db.execute("CREATE TEMP VIEW entries AS SELECT *, 1 AS requests FROM main.entries")
        return
    empty = not db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if application not in (0, APPLICATION) or not empty:
        raise WorkFailed(f"{path} is not a file of rl-cli's", "move it away")
    if write:
        for statement in SCHEMA.split(";")[:-1]:
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")  # the tables stay where what follows is refused
        db.execute("BEGIN IMMEDIATE")


def _bring_up(db: sqlite3.Connection) -> None:
    """To this version: entries of the first one are of one request each."""
    if db.execute("PRAGMA user_version").fetchone()[0] == 1:
        db.execute("ALTER TABLE entries ADD COLUMN requests INTEGER NOT NULL DEFAULT 1")
        db.execute(f"PRAGMA user_version = {VERSION}")


def _explain(error: sqlite3.Error, path: Path) -> RlCliError:
    import sqlite3

    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return WorkFailed(f"the disk is full: cannot write {path}", "free some space and try again")
    if code == sqlite3.SQLITE_BUSY:
        return WorkFailed(f"{path} was held by other processes for {BUSY_SECONDS:.0f} s", "try again")
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT) or isinstance(error, sqlite3.DataError):
        hint = (
            f"what was spent is recorded in it; move it away to begin anew from 0: mv {path} {path}.damaged"
        )
        return WorkFailed(f"{path} is damaged: {error}", hint)
    try:
        with tempfile.TemporaryFile(dir=path.parent) as trial:
            trial.write(b"\0" * 4096)
        with path.open("r+b"):
            pass
    except OSError as cause:
        return explain_os_error(cause, path)
    return WorkFailed(f"cannot use {path}: {error}", "move it away if that does not change")
