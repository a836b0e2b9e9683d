"""What `rl-cli data stats` says: at any time, of running and of damaged batches too."""

from __future__ import annotations

from typing import Any

from rl_cli.core.errors import RlCliError
from rl_cli.core.files import explain_os_error, read_json, read_jsonl
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.coverage import Coverage, coverage
from rl_cli.data.batch.entries import Damage
from rl_cli.data.batch.folder import BatchFolder
from rl_cli.data.batch.index import Index
from rl_cli.data.batch.outcomes import final_entries
from rl_cli.data.batch.samples import accepts
from rl_cli.data.batch.statistics import Tally


def summary(folder: BatchFolder) -> dict[str, Any]:
    """The figures of the ledger as it is now; `merged` and `discarded` are those of the latest merge.

    Raises:
        RlCliError: The ledger cannot be read.
    """
    config, problem = _config(folder)
    tally, damage = Tally(), Damage()
    index = Index(accepts(config) if config else lambda row: True)
    try:
        for entry in final_entries(folder.ledger, damage, on_other=tally.add_other):
            tally.add(entry)
            index.add(entry)
    except OSError as error:
        raise explain_os_error(error, folder.ledger) from error
    covered = coverage(folder, config, index) if config else Coverage(problem=problem)
    state, latest = folder.state(), _latest_merge(folder)
    return {
        "name": folder.name,
        "state": state.get("state"),
        "reason": state.get("reason"),
        **covered.to_dict(),
        **tally.to_dict(),
        "merged": latest.get("merged", 0),
        "discarded": latest.get("discarded", {}),
        "filters": latest.get("filters"),
        "in_flight": state.get("in_flight", 0),
        "damage": vars(damage),
        "evaluation": list(read_jsonl(folder.evaluations)),
        "dir": str(folder.path),
    }


def _config(folder: BatchFolder) -> tuple[BatchConfig | None, str | None]:
    """The settings, or why they cannot be read: what has ended can be counted without them."""
    try:
        return folder.config(), None
    except RlCliError as error:
        return None, str(error)


def _latest_merge(folder: BatchFolder) -> dict[str, Any]:
    try:
        found = read_json(folder.statistics)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
