"""What W&B says of a watched run, next to what its rows say: which state that makes."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.files import write_atomic, write_json
from rl_cli.runs.checks.clock import SystemClock
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import StateWriter
from rl_cli.runs.times import duration, now_text, seconds_of, since, time_text
from rl_cli.runs.tracking_file import write_tracking
from rl_cli.runs.watched import config_of, model_name, path_of, total_steps
from rl_cli.tracking.errors import WandbError
from rl_cli.tracking.local_copy import LocalCopy

ENDS = {"finished": "finished", "failed": "failed", "killed": "stopped"}
"""W&B's states that are ends -> ours."""
LOST = ("crashed", "preempted")
"""W&B has heard nothing for a while: the run may go on all the same."""
GIVEN_UP_SECONDS = 1800.0
"""A run that W&B calls crashed, and that has logged nothing for so long, is taken to be over."""
MOST_CONFIG = 200_000
SHOWN_FIGURES = 8


class RemoteState:
    """State of a watched run.

    Args:
        run: The run.
        writer: Of its state.json.
        copy: Of its rows.
    """

    def __init__(self, run: RunDir, writer: StateWriter, copy: LocalCopy) -> None:
        self.run, self.writer, self.copy = run, writer, copy
        self.config: dict[str, Any] | None = None
        self._said: dict[str, Any] = {}
        """What W&B said last."""
        self._heard = time.monotonic()
        """When rows came last."""
        self._first = True
        self._came = False
        self.cut_to: int | None = None
        """Where the history ends, if the last look has shown that it was cut off there."""
        self._outage: float | None = None
        self._told: set[str] = set()

    @property
    def is_end(self) -> bool:
        """W&B says that the run has ended, and all of its rows are here."""
        return self._said.get("state") in ENDS and self._complete

    @property
    def reads_anew(self) -> bool:
        """The history was cut off and has to be read once more: nothing can be said before."""
        return self.cut_to is not None and self.cut_to >= 0

    @property
    def _complete(self) -> bool:
        last = self._said.get("last_step")
        return not isinstance(last, int) or last < self.copy.next_step

    @property
    def quiet_seconds(self) -> float:
        """Since rows came; 0 where none can be expected."""
        if self._said.get("state") != "running" or self.copy.next_step == 0:
            return 0.0
        return max(0.0, time.monotonic() - self._heard)

    @property
    def running_seconds(self) -> float:
        return max(0.0, since(self._said.get("created")) or 0.0)

    def look(self, said: dict[str, Any], rows: int) -> None:
        """Takes an answer of W&B (see `rl_cli.tracking.sdk.Sdk.rows`), with how many rows came."""
        if self._outage is not None:
            gap = time.monotonic() - self._outage
            self.run.append_event("wandb", mode="watch", message=f"W&B answers again, after {duration(gap)}")
            self._outage = None
        self._said, self._came = said, rows > 0 and not self._first
        if self._first:  # also where this process finds nothing new: it was silent before as well
            age = since(self.copy.newest) or 0.0
            self._heard = time.monotonic() - max(0.0, age)
        elif rows:
            self._heard = time.monotonic()
        self._first = self._first and not self._complete
        if self.config is None:
            self._take_config(said.get("config") or {})
        last, self.cut_to = said.get("last_step"), None
        if isinstance(last, int) and last + 1 < self.copy.next_step and not rows:
            message = f"W&B's history now ends at _step {last}: it is read anew; rows it lost: replaced.jsonl"
            if all(event.get("message") != message for event in self.run.events()):
                self.run.append_event("wandb", mode="watch", message=message)
            self.copy.restart()
            self.cut_to = last
        if self.copy.left_out:
            self._tell(
                "names", f"{len(self.copy.left_out)} figures are not copied: wandb_get_history reads them"
            )
        self._look_for_a_missing_history(rows)

    def unreachable(self, error: WandbError) -> None:
        """W&B gave no answer: that says nothing about the run."""
        if self._outage is None:
            self._outage = time.monotonic()
            last = f"; the last row is from {self.copy.newest}" if self.copy.newest else ""
            message = f"W&B cannot be asked how the run is: {error.message}{last}. It may go on all the same"
            self.run.append_event("wandb", mode="watch", message=message, error=error.kind)
        state = "unauthorised" if error.kind in ("wrong_key", "no_key", "forbidden") else "unavailable"
        self._record(state, one_line(error.message, 200))

    def write(self, figures: dict[str, Any]) -> None:
        """Writes state.json by what is known now.

        Args:
            figures: The run's progress, as `Progress.figures` gives it.
        """
        state, reason, ended = self._judged()
        known: dict[str, Any] = {
            **figures,
            "total_steps": total_steps(self.config or {}),
            "model": model_name(self.config or {}),
            "wandb_url": self._said.get("url"),
            "heartbeat": now_text(),
        }
        if row := known.get("last_metrics"):
            known["last_metrics"] = {name: row[name] for name in row if name != "wandb"}
        if not self.copy.next_step and (step := self._summary_step()) is not None:
            known["step"] = step
        if not self.writer.state.get("started"):
            known["started"] = _as_time(self._said.get("created")) or now_text()
        if not self.writer.state.get("running_since"):
            known["running_since"], known["running_clock"] = now_text(), SystemClock().now().to_dict()
        self._record("ok", None)
        before = self.writer.state
        if (before["state"], before.get("reason")) != (state, reason) or before.get("ended") != ended:
            self.writer.move(state, reason, ended=ended, **known)
            if ended:
                self._report()
        else:
            with suppress(OSError):  # a disk that is full for a moment: the next look tries again
                self.writer.update(**known)

    def _judged(self) -> tuple[str, str | None, str | None]:
        """(state, reason, ended)."""
        said = self._said.get("state")
        heard = _as_time(self._said.get("heartbeat")) or self.copy.newest
        if said in ENDS:
            return ENDS[said], f"W&B says {said}", heard or now_text()
        if said not in LOST:
            return "running", None, None
        silent = max(0.0, since(self.copy.newest) or since(heard) or 0.0)
        if self._came:
            self._tell(
                "disagree",
                f"W&B says {said}, but rows still come (step {self.copy.step}): the process goes on",
                alert=True,
            )
            return "running", None, None
        if self.writer.state["state"] == "running" and self.quiet_since_rows < 120:
            return "running", None, None
        reason = f"W&B says {said}; the last row came at {self.copy.newest or 'no time'}"
        if silent > GIVEN_UP_SECONDS:
            return "lost", f"{reason}, and none since", heard or now_text()
        return "lost", f"{reason}: the process itself may go on", None

    @property
    def quiet_since_rows(self) -> float:
        return time.monotonic() - self._heard

    def _look_for_a_missing_history(self, rows: int) -> None:
        summary = self._said.get("summary") or {}
        figures = [name for name in summary if not name.startswith("_")]
        if rows or not self.copy.is_empty or not figures:
            return
        shown = ", ".join(f"{name} {summary[name]}" for name in figures[:SHOWN_FIGURES])
        message = (
            f"W&B gives no history of this run although its summary has figures ({one_line(shown, 300)})"
        )
        self._tell("history", f"{message}: how it goes cannot be told from that", alert=True)

    def _summary_step(self) -> int | None:
        summary = self._said.get("summary") or {}
        steps = [summary.get(name) for name in ("global_step", "train/global_step", "_step")]
        return next((step for step in steps if isinstance(step, int) and step >= 0), None)

    def _take_config(self, config: dict[str, Any]) -> None:
        self.config = config
        from rl_cli.config.yaml_text import dump_yaml

        text = dump_yaml(config_of(path_of(self.run), config).model_dump(mode="json"))
        with suppress(OSError):
            write_atomic(self.run.path / "run.yaml", text)
            if len(str(config)) < MOST_CONFIG:
                write_json(self.run.path / "wandb_config.json", config)

    def _tell(self, what: str, message: str, alert: bool = False) -> None:
        """Once each."""
        if what in self._told:
            return
        self._told.add(what)
        if alert:
            action = "look at both before anything is decided; nothing was done"
            figures = {"W&B": self._said.get("state"), "step": self.copy.step}
            self.run.append_event(
                "alert",
                rule=f"wandb_{what}",
                severity="warning",
                message=message,
                action=action,
                figures=figures,
            )
        else:
            self.run.append_event("wandb", mode="watch", message=message)

    def _record(self, state: str, error: str | None) -> None:
        with suppress(OSError):
            write_tracking(
                self.run,
                {
                    "mode": "watch",
                    "state": state,
                    "rows": None,
                    "uploaded": None,
                    "remote_state": self._said.get("state"),
                    "remote_step": self._said.get("last_step"),
                    "checked": time.time(),
                    "error": error,
                    "url": self._said.get("url"),
                },
            )

    def _report(self) -> None:
        from rl_cli.runs.reports.report import write_report

        with suppress(Exception):  # the run's end does not depend on it, and `runs report` tries again
            write_report(self.run)


def _as_time(text: Any) -> str | None:
    seconds = seconds_of(text) if isinstance(text, str) else None
    return None if seconds is None else time_text(seconds)
