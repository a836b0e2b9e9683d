"""The ledger to rows: what the filters keep, what they discard, what failed, and figures of all of it.

A merge reads the ledger and writes files beside it, each of them whole or not at all. It can be repeated with
other filters at any time, while the batch is being made too, and always describes all that was paid for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

from rl_cli.core.errors import BadUsage
from rl_cli.core.files import explain_os_error, read_jsonl
from rl_cli.core.json_text import row_json
from rl_cli.core.redaction import redacted_json
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.coverage import coverage
from rl_cli.data.batch.entries import Damage, Entry
from rl_cli.data.batch.filters import Filters
from rl_cli.data.batch.folder import BatchFolder
from rl_cli.data.batch.index import Index
from rl_cli.data.batch.outcomes import final_entries
from rl_cli.data.batch.replacing import replacing
from rl_cli.data.batch.samples import accepts
from rl_cli.data.batch.selection import Selection, selection_of
from rl_cli.data.batch.statistics import Tally

LOCK_SECONDS = 60


def merge(folder: BatchFolder, filters: Filters) -> dict[str, Any]:
    """Writes trajectories.jsonl, discarded.jsonl, failures.jsonl and then statistics.json.

    Args:
        folder: Of a batch that was begun.
        filters: What to discard.

    Returns:
        The statistics (docs/data.md).

    Raises:
        BadUsage: batch.yaml is missing or damaged, or another merge goes on and on.
        RlCliError: A file cannot be read or written; the old ones stay.
    """
    import filelock

    config = folder.config()
    try:
        with filelock.FileLock(folder.path / ".merge.lock", timeout=LOCK_SECONDS):
            return _merge(folder, config, filters)
    except filelock.Timeout:
        raise BadUsage(f"batch {folder.name} is being merged by another process") from None
    except OSError as error:
        raise explain_os_error(error, folder.path if error.filename is None else None) from error


def _merge(folder: BatchFolder, config: BatchConfig, filters: Filters) -> dict[str, Any]:
    end = folder.ledger.stat().st_size if folder.ledger.exists() else 0
    selection = selection_of(config)
    if selection is not None:
        for key, row in _kept(folder, filters, end):
            selection.see(key, row)
    tally, index, damage = Tally(), Index(accepts(config)), Damage()
    merged, discarded = 0, Counter[str]()
    with ExitStack() as files:
        kept, gone, failed = (
            files.enter_context(replacing(path))
            for path in (folder.trajectories, folder.discarded, folder.failures)
        )
        for entry in final_entries(folder.ledger, damage, end, tally.add_other):
            tally.add(entry)
            index.add(entry)
            if entry["state"] == "failed" or entry["row"] is None:
                failed.write(_line(entry))
            elif reason := _reason(entry, filters, selection):
                discarded[reason] += 1
                gone.write(_line({"discarded": reason, **entry["row"]}))
            else:
                merged += 1
                kept.write(_line(entry["row"]))
    statistics = {
        "name": folder.name,
        **coverage(folder, config, index).to_dict(),
        **tally.to_dict(),
        "merged": merged,
        "discarded": dict(sorted(discarded.items())),
        "filters": filters.to_dict(),
        "damage": vars(damage),
        "evaluation": list(read_jsonl(folder.evaluations)),
    }
    with replacing(folder.statistics) as file:
        file.write(redacted_json(statistics, indent=2).encode() + b"\n")
    return statistics


def _kept(folder: BatchFolder, filters: Filters, end: int) -> Iterator[tuple[str, Any]]:
    """(key, row) of the samples that the filters leave for the selection."""
    for entry in final_entries(folder.ledger, Damage(), end):
        row = entry["row"]
        if entry["state"] == "done" and row is not None and filters.reason(row) is None:
            yield entry["key"], row


def _reason(entry: Entry, filters: Filters, selection: Selection | None) -> str | None:
    reason = filters.reason(entry["row"]) if entry["row"] is not None else None
    return reason or (selection.reason(entry["key"]) if selection else None)


def _line(value: Any) -> bytes:
    return row_json(cast(dict[str, Any], value)) + b"\n"
