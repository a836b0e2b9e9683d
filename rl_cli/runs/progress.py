"""How far a run is: kept up to date from the rows that its files gain."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from rl_cli.core.files import tail_jsonl
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import NO_EVALUATION
from rl_cli.runs.times import seconds_of

Row = dict[str, Any]


def number(row: Row, name: str) -> float | None:
    """A figure of a metrics row; NaN and infinities, which the file holds as text, are floats again."""
    value = row.get(name)
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def finite(rows: Iterable[Row], name: str) -> list[float]:
    """The finite values of one figure, in order."""
    values = (number(row, name) for row in rows)
    return [v for v in values if v is not None and math.isfinite(v)]


class Progress:
    """What the metrics and events of a run add up to.

    Args:
        total_steps: GRPO steps that are planned.
    """

    def __init__(self, total_steps: int | None = None) -> None:
        self.total_steps = total_steps
        self.rows: list[Row] = []
        self.phase: str | None = None
        self.step = 0
        self.eval: dict[str, Any] = dict(NO_EVALUATION)
        self.validations: dict[int, float] = {}
        self.alerts: list[Row] = []
        self.wandb_url: str | None = None

    def feed(self, rows: list[Row], events: list[Row]) -> None:
        """Takes what is new in metrics.jsonl and events.jsonl."""
        for event in events:
            kind = event.get("kind")
            if kind == "phase":
                self.phase = str(event.get("name"))
            elif kind == "evaluation":
                self._evaluation(event)
            elif kind == "alert":
                self.alerts.append({k: v for k, v in event.items() if k != "kind"})
            elif kind == "wandb" and event.get("url"):
                self.wandb_url = str(event["url"])
        for row in rows:
            self.rows.append(row)
            if row.get("phase") == "grpo" and isinstance(row.get("step"), int):
                self.step = row["step"]
                accuracy = number(row, "accuracy/validation")
                if accuracy is not None:
                    self.validations[self.step] = accuracy

    def _evaluation(self, event: Row) -> None:
        which, accuracy = event.get("which"), number(event, "accuracy")
        if accuracy is None or not math.isfinite(accuracy):
            return
        if which == "validation":
            step = event.get("step")
            self.validations[step if isinstance(step, int) else 0] = accuracy
        elif which in self.eval and which != "n":
            n = event.get("n")
            self.eval = {**self.eval, which: accuracy, "n": n if isinstance(n, int) and n else self.eval["n"]}

    def figures(self) -> dict[str, Any]:
        """The part of state.json that this is about."""
        return {
            "phase": self.phase,
            "step": self.step,
            "total_steps": self.total_steps,
            "eval": self.eval,
            "last_metrics": self.rows[-1] if self.rows else {},
            "alerts": self.alerts,
            "wandb_url": self.wandb_url,
        }

    def grpo(self) -> list[Row]:
        return [row for row in self.rows if row.get("phase") == "grpo" and isinstance(row.get("step"), int)]

    def report(self) -> dict[str, Any]:
        """Progress in figures, as `rl_check_status` shows it; None where nothing is known yet."""
        rows = self.grpo()
        rewards = [(row["step"], v) for row in rows if (v := number(row, "reward/mean")) is not None]
        best = max(rewards, key=lambda pair: pair[1], default=None)
        signal = finite(rows[-5:], "groups/with_signal")
        return {
            "phase": self.phase,
            "step": self.step,
            "total_steps": self.total_steps,
            "eta_seconds": self.eta_seconds(),
            "reward_first": rewards[0][1] if rewards else None,
            "reward_last": rewards[-1][1] if rewards else None,
            "reward_best": best[1] if best else None,
            "signal_share": sum(signal) / len(signal) if signal else None,
            "steps_since_best": self.step - best[0] if best else None,
        }

    def eta_seconds(self) -> float | None:
        """Seconds until the last GRPO step at the pace of the last ten; evaluations are not counted."""
        rows = self.grpo()[-11:]
        if not self.total_steps or len(rows) < 2:
            return None
        paces = finite(rows[1:], "seconds/step")
        first, last = seconds_of(rows[0].get("time")), seconds_of(rows[-1].get("time"))
        if paces:
            pace = sum(paces) / len(paces)
        elif first is not None and last is not None:
            pace = (last - first) / (len(rows) - 1)
        else:
            return None
        return round(max(0, self.total_steps - self.step) * pace, 1)


class Reader:
    """Reads only what the metrics and events of a run have gained since the last call."""

    def __init__(self, run: RunDir) -> None:
        self._paths = (run.path / "metrics.jsonl", run.path / "events.jsonl")
        self._offsets = [0, 0]
        self._sizes = [-1, -1]

    def read(self) -> tuple[list[Row], list[Row]]:
        """Returns (new metrics rows, new events). Costs two `stat` calls if there are none."""
        found: list[list[Row]] = []
        for i, path in enumerate(self._paths):
            try:
                size = path.stat().st_size
            except FileNotFoundError:
                size = 0
            rows: list[Row] = []
            if size != self._sizes[i]:
                self._sizes[i] = size
                rows, self._offsets[i] = tail_jsonl(path, self._offsets[i])
            found.append(rows)
        return found[0], found[1]


def progress_of(run: RunDir) -> Progress:
    """The whole progress of a run, read from its files."""
    progress = Progress(run.state().get("total_steps"))
    progress.feed(run.metrics(), run.events())
    return progress
