"""A batch's folder: its settings, its lock, its state, and where everything lies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rl_cli.config.yaml_text import dump_yaml, read_yaml
from rl_cli.core.errors import BadUsage, did_you_mean
from rl_cli.core.files import explain_os_error, read_json, write_atomic, write_json
from rl_cli.core.processes import ProcessIdentity
from rl_cli.core.settings import home
from rl_cli.data.batch.config import NAME, BatchConfig, differences
from rl_cli.data.batch.config_file import checked

STATES = ("running", "finished", "stopped", "failed")
State = dict[str, Any]
"""What docs/data.md lists."""


class BatchFolder:
    """A batch, by its folder; it need not exist.

    Args:
        path: The folder; its name is the batch's.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.ledger = self.path / "ledger.jsonl"
        """How every sample ended."""
        self.evaluations = self.path / "evaluations.jsonl"
        """What the held-out items came to, one line each time they were asked."""
        self.held_out = self.path / "held_out.json"
        """The keys of the items that are kept for evaluation, as they were first chosen."""
        self.trajectories = self.path / "trajectories.jsonl"
        self.discarded = self.path / "discarded.jsonl"
        self.failures = self.path / "failures.jsonl"
        self.statistics = self.path / "statistics.json"

    @property
    def name(self) -> str:
        return self.path.name

    def exists(self) -> bool:
        return (self.path / "batch.yaml").is_file() or self.ledger.is_file()

    def config(self) -> BatchConfig:
        """What the batch was begun with. It is called as its folder, which may be a copy, or have been moved.

        Raises:
            BadUsage: batch.yaml is missing or damaged.
        """
        return checked({**read_yaml(self.path / "batch.yaml"), "name": self.name}, f"batch {self.name}")

    def begin(self, config: BatchConfig) -> None:
        """Writes batch.yaml, or compares with it where something of the batch was asked before.

        `max_samples` is of a start, to try a batch out, and not of the batch: it is not written.

        Raises:
            BadUsage: It was begun with other settings, and rows of both would be mixed.
            RlCliError: The folder cannot be written.
        """
        file = self.path / "batch.yaml"
        if file.exists() and self._has_asked():
            self.check_same(config)
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.held_out.unlink(missing_ok=True)
            write_atomic(file, dump_yaml(config.model_dump() | {"max_samples": None}))
        except OSError as error:
            raise explain_os_error(error, self.path) from error

    def check_same(self, config: BatchConfig) -> None:
        """Raises BadUsage where something was asked with other settings than these."""
        if self._has_asked() and (told := differences(self.config(), config)):
            hint = "give the earlier settings, or another name"
            raise BadUsage(f"batch {self.name} was begun otherwise: {'; '.join(told)}", hint)

    def _has_asked(self) -> bool:
        return any(file.exists() and file.stat().st_size for file in (self.ledger, self.evaluations))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the right to write the ledger and state.json.

        Raises:
            BadUsage: Another process has it.
            RlCliError: The folder cannot be written.
        """
        import filelock

        lock = filelock.FileLock(self.path / ".lock", timeout=0)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except filelock.Timeout:
            process = self.state().get("process") or {}
            who = f"process {process['pid']}" if process.get("pid") else "another process"
            hint = "wait until it has ended, or stop it"
            raise BadUsage(f"batch {self.name} is being made by {who}", hint) from None
        except OSError as error:
            raise explain_os_error(error, self.path) from error
        try:
            yield
        finally:
            lock.release()

    def state(self) -> State:
        """state.json as it is true now; {} where there is none, or a damaged one.

        A process that is gone cannot have written so: what it left `running` is `stopped`.
        """
        try:
            state = read_json(self.path / "state.json")
        except (OSError, ValueError):
            return {}
        if not isinstance(state, dict) or state.get("state") not in STATES:
            return {}
        if state["state"] == "running" and _is_gone(state.get("process")):
            gone = "its process is gone: killed, or the machine was started again"
            return {**state, "state": "stopped", "reason": gone, "in_flight": 0}
        return state

    def write_state(self, state: State) -> None:
        """Replaces state.json; only for whoever holds the lock.

        Raises:
            OSError: It cannot be written; the old one stays.
        """
        write_json(self.path / "state.json", state)


def batch_folder(name: str) -> BatchFolder:
    """The folder of a batch, whether it exists or not.

    Raises:
        BadUsage: The name is none of a batch.
    """
    if not NAME.fullmatch(name):
        hint = "letters, digits, . _ and -, at most 100, the first a letter or digit"
        raise BadUsage("that is no name of a batch", hint)
    return BatchFolder(batches_folder() / name)


def find_batch(name: str) -> BatchFolder:
    """A batch that exists.

    Raises:
        BadUsage: There is none; the hint has the nearest names.
    """
    folder = batch_folder(name)
    if folder.exists():
        return folder
    known = [batch.name for batch in list_batches()]
    hint = did_you_mean(name, known) if known else "rl-cli data generate makes one"
    raise BadUsage(f"there is no batch {name}", hint)


def list_batches() -> list[BatchFolder]:
    """All of them, by their names."""
    try:
        found = [BatchFolder(path) for path in batches_folder().iterdir() if NAME.fullmatch(path.name)]
    except FileNotFoundError:
        return []
    return sorted((batch for batch in found if batch.exists()), key=lambda batch: batch.name)


def batches_folder() -> Path:
    return home() / "batches"


def _is_gone(process: Any) -> bool:
    try:
        return ProcessIdentity.from_dict(process).alive() is False
    except (KeyError, TypeError, ValueError):
        return True
