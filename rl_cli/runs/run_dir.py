"""One run's directory: what is read from it and what is added to it.

Every file can be read while it is written. Workers append (events, metrics, samples) and leave their
readiness and their exit in files of their own; state.json belongs to the holder of the lock (`state_file`).
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl_cli.core.files import append_jsonl, read_json, read_jsonl, write_json
from rl_cli.runs.attempts import Resume, read_resume, with_changes
from rl_cli.runs.place import disowned, is_copy
from rl_cli.runs.state_file import (
    NO_EVALUATION,
    State,
    StateWriter,
    is_over,
    judge,
    read_state,
    recorded_end,
    write_into_reserve,
)
from rl_cli.runs.times import now_text

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig


def asked_by(request: Mapping[str, Any]) -> str:
    """The reason of a run that was stopped because of `request`."""
    return f"{request['by']}: {request['reason']}"


class RunDir:
    """A run, by its directory.

    Args:
        path: The directory; its name is the run's id.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()

    def __repr__(self) -> str:
        return f"RunDir({str(self.path)!r})"

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def home(self) -> Path:
        """RL_CLI_HOME, which holds it."""
        return self.path.parent.parent

    def config_dict(self) -> dict[str, Any]:
        """run.yaml as plain values, with what was changed when the run was resumed."""
        from rl_cli.config.yaml_text import read_yaml

        resume = self.resume()
        return with_changes(read_yaml(self.path / "run.yaml"), resume.changes if resume else {})

    def config(self) -> RunConfig:
        from rl_cli.config.tree import RunConfig

        return RunConfig.model_validate(self.config_dict())

    def resume(self) -> Resume | None:
        """What the current attempt starts from; None at the first one.

        Raises:
            BadUsage: resume.json is damaged.
        """
        return read_resume(self.path)

    def state(self) -> State:
        """state.json as it is true now: `lost` and ends without a supervisor are derived (see `judge`)."""
        state = read_state(self.path)
        if is_over(state):
            return state
        if is_copy(state, self.path):
            return disowned(state)
        request = self.stop_requested()
        judged = judge(state, self.exit("trainer"), asked_by(request) if request else None)
        if judged is state:
            return state
        if is_over(judged) and (recorded := recorded_end(self.path)):
            judged = {**judged, **recorded}  # the supervisor could tell the end but not write it: a full disk
        again = read_state(self.path)  # the supervisor may have written the end just before it went
        return again if is_over(again) else judged

    def events(self) -> list[dict[str, Any]]:
        return list(read_jsonl(self.path / "events.jsonl"))

    def metrics(self) -> list[dict[str, Any]]:
        return list(read_jsonl(self.path / "metrics.jsonl"))

    def samples(self) -> list[dict[str, Any]]:
        return list(read_jsonl(self.path / "samples.jsonl"))

    def last_metrics(self) -> dict[str, Any]:
        """The newest row of metrics.jsonl, read from its end; {} if there is none."""
        path = self.path / "metrics.jsonl"
        size = path.stat().st_size if path.exists() else 0
        rows: Iterator[dict[str, Any]] = read_jsonl(path, max(0, size - 16_384))
        return next(reversed(list(rows)), {})

    def append_event(self, kind: str, **fields: Any) -> None:
        append_jsonl(self.path / "events.jsonl", {"time": now_text(), "kind": kind, **fields})

    def append_metrics(self, phase: str, step: int, **fields: Any) -> None:
        """One row of flat figures. NaN and infinities are kept, as the strings "NaN" and "Infinity"."""
        append_jsonl(
            self.path / "metrics.jsonl", {"time": now_text(), "phase": phase, "step": step, **fields}
        )

    def append_sample(self, **fields: Any) -> None:
        """A rollout worth showing: `step`, `prompt`, `completion`, `reward`, and what else helps."""
        append_jsonl(self.path / "samples.jsonl", {"time": now_text(), **fields})

    def log_path(self, process: str) -> Path:
        return self.path / "logs" / f"{process}.log"

    def request_stop(self, by: str, reason: str, now: bool = False) -> bool:
        """Asks the run to stop. The first request stays; a later one can only say that it must be `now`.

        Args:
            by: Who asks: "user", "assistant", "health", ...
            reason: One line.
            now: Leave the worker no time to save.

        Returns:
            Whether this request was new.

        Raises:
            OSError: It cannot be written, not even into the run's reserve.
        """
        earlier = self.stop_requested()
        if earlier and (earlier.get("now") or not now):
            return False
        request = {"by": by, "reason": reason, "time": now_text(), "now": now}
        record = {**request, **(earlier or {}), "now": now}
        try:
            write_json(self.path / "stop.json", record)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            try:
                write_into_reserve(self.path, "stop.json", record)
            except FileNotFoundError:  # no reserve is left
                raise error from None
        with suppress(OSError):  # a full disk: stop.json is what counts
            self.append_event("stop_requested", by=by, reason=reason, now=now)
        return True

    def stop_requested(self) -> dict[str, Any] | None:
        return self._record("stop.json", "by", "reason")

    def mark_ready(self, process: str, total_steps: int | None = None) -> None:
        """Says that a process has loaded what it needs.

        Args:
            process: Its name, e.g. "trainer".
            total_steps: The steps it is going to make, where that differs from the config's.
        """
        record = {"time": now_text(), "process": process, "total_steps": total_steps}
        write_json(self.path / "ready" / f"{process}.json", record)

    def ready(self, process: str) -> dict[str, Any] | None:
        return self._record(f"ready/{process}.json")

    def write_exit(self, process: str, code: int, outcome: str, reason: str) -> None:
        """The last thing a worker does.

        Args:
            process: Its name.
            code: The exit code it is going to end with.
            outcome: "finished", "stopped" or "failed".
            reason: One line.
        """
        record = {"process": process, "code": code, "outcome": outcome, "reason": reason, "time": now_text()}
        write_json(self.path / "exit" / f"{process}.json", record)

    def exit(self, process: str) -> dict[str, Any] | None:
        return self._record(f"exit/{process}.json", "outcome", "reason", "time")

    def first_start(self, state: State) -> str | None:
        """When the first attempt started; state.json has that of the current one."""
        first = self._record("attempts/1/state.json") if (state.get("attempt") or 1) > 1 else None
        started = (first or {}).get("started")
        return started if isinstance(started, str) else state.get("started")

    def summary(self) -> dict[str, Any]:
        """What `runs show --json` prints."""
        state = self.state()
        return {
            "id": self.id,
            "state": state["state"],
            "reason": state.get("reason"),
            **{key: state.get(key) for key in ("environment", "profile", "backend", "model")},
            **{key: state.get(key) for key in ("step", "total_steps")},
            "started": self.first_start(state),
            **{key: state.get(key) for key in ("ended", "wandb_url")},
            "eval": {**NO_EVALUATION, **(state.get("eval") or {})},
            "last_metrics": state.get("last_metrics") or {},
            "alerts": [{"rule": "?", "message": "?", "action": "?", **a} for a in state.get("alerts") or []],
            "dir": str(self.path),
        }

    @contextmanager
    def locked(self, timeout: float = 0) -> Iterator[StateWriter]:
        """Holds the run's lock, the right to write state.json.

        Raises:
            TimeoutError: Somebody else still holds it after `timeout` seconds.
            OSError: The directory cannot be written.
        """
        import filelock

        lock = filelock.FileLock(self.path / ".lock", timeout=timeout)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise TimeoutError(f"{self.id} is held by another process") from None
        try:
            yield StateWriter(self.path)
        finally:
            lock.release()

    def _record(self, name: str, *texts: str) -> dict[str, Any] | None:
        """A file that holds a mapping with these texts; None if it is missing or damaged."""
        try:
            record = read_json(self.path / name)
        except (OSError, ValueError, RecursionError):
            return None
        right = isinstance(record, dict) and all(isinstance(record.get(text), str) for text in texts)
        return record if right else None
