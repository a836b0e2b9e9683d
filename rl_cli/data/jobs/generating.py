"""Detached generation: the samples of a batch, then its merge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rl_cli.data.batch.config_file import checked
from rl_cli.data.batch.filters import Filters
from rl_cli.data.batch.folder import BatchFolder
from rl_cli.data.batch.merge import merge
from rl_cli.data.batch_runner import run_batch

MOST_BAD_ROWS = 20
"""So many stand in the log one by one."""


def generate_batch(
    folder: BatchFolder, order: dict[str, Any], begun: Callable[[], None]
) -> tuple[str, str | None, int]:
    """Asks what the batch lacks, and merges what there is.

    Args:
        folder: The batch's.
        order: Its settings, with its model.
        begun: Called once the settings have turned out to be usable.

    Returns:
        How it ended, why, and the exit code of the command.

    Raises:
        RlCliError: As run_batch() and merge().
    """
    config, bad, told = checked(order), 0, False

    def bad_row(where: str, why: str) -> None:
        nonlocal bad
        bad += 1
        if bad <= MOST_BAD_ROWS:
            print(f"{where} is passed over: {why}", flush=True)

    def progress(_: object) -> None:
        nonlocal told
        if not told:
            told = True
            begun()

    ended = run_batch(config, progress, bad_row)
    merge(folder, Filters(min_score=config.min_score))
    print(f"{ended.state}: {ended.progress.done} done, {ended.progress.failed.total()} failed", flush=True)
    return ended.state, ended.reason, ended.exit_code
