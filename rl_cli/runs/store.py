"""All runs of a home folder: making one, listing them, finding one by what a person types."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl_cli.core.errors import BadUsage, nearest
from rl_cli.core.files import explain_os_error
from rl_cli.core.processes import ProcessIdentity
from rl_cli.core.redaction import redact
from rl_cli.runs.first_files import write_first_files
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.settle import settle
from rl_cli.runs.state_file import read_state, set_reserve_aside
from rl_cli.runs.watched import PREFIX, watched_run

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig

__all__ = ["RunDir", "create_run", "find_run", "list_runs", "runs_folder", "settle"]


def runs_folder(home: str | Path) -> Path:
    return Path(home) / "runs"


def create_run(
    config: RunConfig,
    home: str | Path,
    files: Mapping[str, str] | None = None,
    spending: Mapping[str, Any] | None = None,
) -> RunDir:
    """A new run in state `created`. It appears whole: readers never see half of it.

    Args:
        config: The config.
        home: RL_CLI_HOME.
        files: More files for its directory, name -> text.
        spending: What was reserved for it, as `rl_cli.spending.gate.reserve_run` returns it.

    Raises:
        RlCliError: The home folder cannot be written, or its disk is full.
    """
    folder = runs_folder(home)
    draft = folder / f".new-{secrets.token_hex(6)}"
    try:
        draft.mkdir(parents=True)
        write_first_files(
            draft,
            redact(config.model_dump(mode="json")),
            files,
            profile=config.profile,
            model=config.model.name,
            creator=ProcessIdentity.current().to_dict(),
            total_steps=config.grpo.steps,
            spending=dict(spending) if spending else None,
        )
        set_reserve_aside(draft)
        return RunDir(_place(draft, folder, config.environment.name))
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise explain_os_error(error, folder) from error


def _place(draft: Path, folder: Path, name: str) -> Path:
    """Renames the finished draft to the first free id: <date>-<time UTC>-<environment>[-<n>]."""
    stem = time.strftime("%Y%m%d-%H%M%S", time.gmtime()) + f"-{name}"
    for n in range(1, 1000):
        target = folder / (stem if n == 1 else f"{stem}-{n}")
        try:
            os.rename(draft, target)
        except OSError:
            if not target.exists():
                raise
        else:
            return target
    raise FileExistsError(f"a thousand runs named {stem}")


def _all(home: str | Path) -> list[RunDir]:
    """Newest first: by the second in the id, and by state.json among those of one second."""
    names: list[str] = []
    with contextlib.suppress(FileNotFoundError), os.scandir(runs_folder(home)) as found:
        names = [e.name for e in found if e.is_dir() and not e.name.startswith(".")]
    seconds = Counter(name[:15] for name in names)

    def order(name: str) -> tuple[str, str, str]:
        watched = name.startswith("wandb-")
        tied = watched or seconds[name[:15]] > 1
        created = str(read_state(runs_folder(home) / name).get("created") or "") if tied else ""
        second = created[:19].replace("-", "").replace(":", "").replace("T", "-") if watched else name[:15]
        return second, created, name

    return [RunDir(runs_folder(home) / name) for name in sorted(names, key=order, reverse=True)]


def list_runs(home: str | Path) -> list[RunDir]:
    """Every run, newest first, each settled (see `settle`)."""
    runs = _all(home)
    for run in runs:
        settle(run)
    return runs


def find_run(home: str | Path, text: str) -> RunDir:
    """The run that `text` means: its id, a unique beginning of it, "latest", or wandb:ENTITY/PROJECT/RUN.

    The latter, a run that somebody else started, gets a directory that follows it (see `watched`).

    Raises:
        BadUsage: None or several; the hint names the nearest ids.
    """
    if text.startswith(PREFIX):
        return watched_run(home, text)
    runs = _all(home)
    ids = [run.id for run in runs]
    if not runs:
        raise BadUsage(f"unknown run '{text}': there are no runs yet", "start one: rl-cli runs start ENV")
    found = runs[:1] if text == "latest" else [r for r in runs if r.id == text]
    found = found or [r for r in runs if text and r.id.startswith(text)]
    if len(found) > 1:
        raise BadUsage(f"'{text}' means {len(found)} runs", f"one of: {', '.join(r.id for r in found[:5])}")
    if not found:
        close = nearest(text, ids) or ids[:3]
        raise BadUsage(f"unknown run '{text}'", f"nearest: {', '.join(close)}")
    settle(found[0])
    return found[0]
