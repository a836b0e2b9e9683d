"""How each sample of a ledger ended, however many lines there are of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rl_cli.core.files import open_regular
from rl_cli.data.batch.entries import Damage, Entry, parse_entry, read_entries
from rl_cli.data.batch.index import Index


def final_entries(path: Path, damage: Damage, end: int | None = None) -> Iterator[Entry]:
    """Each sample once: its first `done`, else its last `failed`, which come behind the others.

    Args and errors are those of read_entries().
    """
    index = Index(lambda row: True)
    failed: dict[str, int] = {}
    for at, entry in read_entries(path, damage, end):
        if index.is_done(entry["key"]):
            continue
        if entry["state"] == "done":
            index.add(entry)
            failed.pop(entry["key"], None)
            yield entry
        else:
            failed[entry["key"]] = at
    if not failed:
        return
    with open_regular(path) as file:
        for at in failed.values():
            file.seek(at)
            if (last := parse_entry(file.readline())) is not None:
                yield last
