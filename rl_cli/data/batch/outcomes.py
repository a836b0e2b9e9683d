"""How each sample of a ledger ended, however many lines there are of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from rl_cli.core.files import open_regular
from rl_cli.data.batch.entries import Damage, Entry, parse_entry, read_entries
from rl_cli.data.batch.index import Index


def final_entries(
    path: Path,
    damage: Damage,
    end: int | None = None,
    on_other: Callable[[Entry], None] = lambda entry: None,
) -> Iterator[Entry]:
    """Each sample once: its first `done`, else its last `failed`, which come behind the others.

    Args:
        on_other: Given what was paid for beside them: samples that stayed open, failures that were tried
            again.

    The others, and errors, are those of read_entries().
    """
    index = Index(lambda row: True)
    failed: dict[str, int] = {}
    tried_again: list[int] = []
    for at, entry in read_entries(path, damage, end):
        key = entry["key"]
        if entry["state"] == "open":
            on_other(entry)
        elif not index.is_done(key):
            if key in failed:
                tried_again.append(failed.pop(key))
            if entry["state"] == "done":
                index.add(entry)
                yield entry
            else:
                failed[key] = at
    if not failed and not tried_again:
        return
    with open_regular(path) as file:
        for at in tried_again:
            if (earlier := _entry_at(file, at)) is not None:
                on_other(earlier)
        for at in failed.values():
            if (last := _entry_at(file, at)) is not None:
                yield last


def _entry_at(file: BinaryIO, at: int) -> Entry | None:
    file.seek(at)
    return parse_entry(file.readline())
