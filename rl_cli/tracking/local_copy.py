"""The local copy of a watched run's history: rows of W&B become rows of metrics.jsonl.

A row of W&B is one call of log(); a row here is one step. Rows of one step are merged, and get common names.
Where a step comes again, or the run goes back (continued from a checkpoint), the rows from there on are
replaced: the last value counts. Rows that were replaced stay in replaced.jsonl: it may be their only copy.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rl_cli.core.files import read_jsonl
from rl_cli.core.json_text import row_json
from rl_cli.core.redaction import redact_text
from rl_cli.runs.curves import MOST_STEP, TEXT_NUMBERS, as_number, as_step
from rl_cli.runs.metric_names import SOURCES, common_row, resolve
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.times import now_text, time_text
from rl_cli.runs.watched import wandb_step
from rl_cli.tracking.figures import AXES

Row = dict[str, Any]

SFT_AXIS = "sft/step"
OTHER_NAMES = 64
"""Figures without a common name that are kept, the first ones that come: a run may have thousands."""
LONGEST_NAME = 200
TAIL_BYTES = 1 << 18
ALL_AXES = frozenset(AXES)


@dataclass
class _Step:
    """A row that may still grow."""

    phase: str
    step: int
    figures: Row = field(default_factory=dict)
    time: str = ""
    wandb_step: int = -1
    restored: bool = False
    """Read from the file, so that its names are common ones already."""
    written: bool = False
    """The file has a row of it."""


class _Line(NamedTuple):
    """A row to be written."""

    phase: str
    step: int
    text: bytes


class LocalCopy:
    """Only the holder of the run's lock may have one.

    Args:
        run: The watched run; what it has of metrics.jsonl is gone on with.
    """

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._path, self._replaced = run.path / "metrics.jsonl", run.path / "replaced.jsonl"
        self._open: _Step | None = None
        self._dirty = False
        self._splits = False
        """Steps of this run come in several rows."""
        self._axis_seen = False
        self._kept: dict[str, dict[str, str | None]] = {"sft": {}, "grpo": {}}
        """By phase: name at W&B -> name here, None if it is not copied."""
        self._others = 0
        self.left_out: set[str] = set()
        """Names that are not copied."""
        self._went_back: list[tuple[int, int]] = []
        """(from, to) of steps that went backwards and are not written yet."""
        self.newest: str | None = None
        """When the newest row was logged."""
        self.next_step = 0
        """The `_step` of W&B to read from."""
        self._buffer: list[_Line] = []
        self._gone: list[_Line] = []
        """Rows of it that were replaced before they were written."""
        self._from: dict[str, int] = {}
        """By phase: the step from which on the file's rows are replaced by those of the buffer."""
        self._rewound = False
        """All that the file has is replaced as soon as rows come."""
        self._resume()

    def _resume(self) -> None:
        if not self._path.exists():
            return
        size = self._path.stat().st_size
        rows = [row for row in read_jsonl(self._path, max(0, size - TAIL_BYTES)) if wandb_step(row) >= 0]
        if not rows:
            self._rewrite(lambda row: True)
            return
        with self._path.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # a line that a kill has torn
                file.write(b"\n")
        last = rows[-1]
        figures = {name: last[name] for name in last if name not in ("time", "phase", "step", "wandb")}
        self._open = _Step(last["phase"], last["step"], figures, last["time"], wandb_step(last), True, True)
        self._axis_seen = last["step"] != wandb_step(last)
        self.next_step, self.newest = wandb_step(last) + 1, last["time"]

    def restart(self) -> None:
        """The history is no longer the one that was copied: it is read anew, and kept as it is until then."""
        self.close_step(last=True)
        self._rewound, self.next_step = True, 0

    @property
    def is_empty(self) -> bool:
        """Nothing was copied yet."""
        return self._open is None

    def take(self, rows: list[Row]) -> None:
        """Takes rows of W&B, in their order, and writes the steps that are complete.

        Raises:
            OSError: They cannot be written.
        """
        good = [row for row in rows if isinstance(row, dict) and as_step(row.get("_step")) is not None]
        if good and self._rewound:
            self._rewrite(lambda row: True)
            self._open, self._rewound = None, False
        for row in good:
            self._take(row)
        self._write()

    def close_step(self, last: bool) -> None:
        """Writes the newest step too, unless it may still grow: at the end of a look.

        Args:
            last: Nothing new came, or the run is over.
        """
        if self._dirty and (last or not self._splits):
            self._close()
        self._write()

    @property
    def step(self) -> int:
        """The newest step, as the run counts."""
        return self._open.step if self._open else 0

    def _take(self, row: Row) -> None:
        phase, step = self._place(row)
        figures = self._figures(row, phase)
        self.next_step = max(self.next_step, row["_step"] + 1)
        logged = as_number(row.get("_timestamp"))
        time = now_text() if logged is None or not 0 < logged < 1e11 else time_text(logged)
        self.newest = time
        current = self._open
        if current and phase == current.phase:
            again = step == current.step
            late = step < current.step and not (figures.keys() & current.figures.keys())
            if again or late:
                current.figures.update(common_row(figures) if current.restored else figures)
                current.wandb_step = row["_step"]
                self._dirty = True
                self._splits = self._splits or again
                return
            if step < current.step:
                self._went_back.append((current.step, step))
        if self._dirty:
            self._close()
        if current and phase == current.phase and step < current.step:
            self._replace_from(phase, step)
        self._open = _Step(phase, step, figures, time, row["_step"])
        self._dirty = True

    def _place(self, row: Row) -> tuple[str, int]:
        """Phase and step of a row; one without a step of its own belongs to the step that is going on."""
        if (step := _whole(row.get(SFT_AXIS))) is not None:
            return "sft", step
        for axis in AXES if not ALL_AXES.isdisjoint(row) else ():
            if (step := _whole(row.get(axis))) is not None:
                self._axis_seen = True
                return "grpo", step
        if self._open and self._axis_seen:
            return self._open.phase, self._open.step
        return "grpo", row["_step"]

    def _figures(self, row: Row, phase: str) -> Row:
        kept = self._kept[phase]
        figures: Row = {}
        for name, value in row.items():
            if type(value) is not float and not _is_figure(value):
                continue
            try:
                known = kept[name]
            except KeyError:
                known = kept[name] = self._name(name, phase)
            if known is not None:
                figures[known] = value
        return figures

    def _name(self, name: str, phase: str) -> str | None:
        """The name to write, masked and bounded; None for what is no figure, and if there are too many."""
        if name.startswith("_") or name in AXES or name in (SFT_AXIS, "time", "phase", "wandb"):
            return None
        if name not in SOURCES and resolve(name) is None:
            if self._others >= OTHER_NAMES:
                self.left_out.add(name)
                return None
            self._others += 1
        masked = redact_text(name)[:LONGEST_NAME]
        return masked.removeprefix("sft/") if phase == "sft" else masked

    def _close(self) -> None:
        one = self._open
        if one is None:
            return
        if one.written:
            self._replace_from(one.phase, one.step)
        place = {"time": one.time, "phase": one.phase, "step": one.step, "wandb": {"step": one.wandb_step}}
        self._buffer.append(_Line(one.phase, one.step, row_json({**place, **common_row(one.figures)})))
        self._dirty, one.written = False, True

    def _replace_from(self, phase: str, step: int) -> None:
        self._from[phase] = min(step, self._from.get(phase, step))
        self._gone += [line for line in self._buffer if line.phase == phase and line.step >= step]
        self._buffer = [line for line in self._buffer if line.phase != phase or line.step < step]

    def _write(self) -> None:
        for before, to in self._went_back:  # first: readers forget what stands after the step
            message = f"the run went back from step {before} to {to}: continued from a checkpoint"
            self._run.append_event("resumed", step=to - 1, by="W&B", message=message)
        self._went_back = []
        if self._from:
            self._rewrite(lambda row: row["step"] >= self._from.get(row["phase"], MOST_STEP + 1))
        elif self._buffer:
            with self._path.open("ab") as file:
                file.write(_bytes_of(self._buffer))
        self._buffer, self._gone, self._from = [], [], {}

    def _rewrite(self, goes: Callable[[Row], bool]) -> None:
        """Another file, which readers read anew: without the rows that go, with those of the buffer."""
        self._path.touch()
        draft = self._path.with_name(f".{self._path.name}.{secrets.token_hex(6)}.tmp")
        try:
            with self._path.open("rb") as old, draft.open("wb") as new, self._replaced.open("ab") as aside:
                for line in old:
                    row = _row_of(line)
                    (aside if row is None or goes(row) else new).write(line)
                new.write(_bytes_of(self._buffer))
                aside.write(_bytes_of(self._gone))
            draft.replace(self._path)
        finally:
            draft.unlink(missing_ok=True)


def _is_figure(value: Any) -> bool:
    kind = type(value)
    whole = kind is int and abs(value) < MOST_STEP
    return whole or kind is float or (kind is str and value.lower() in TEXT_NUMBERS)


def _whole(value: Any) -> int | None:
    number = as_number(value)
    if number is None or not number.is_integer() or not 0 <= number < MOST_STEP:
        return None
    return int(number)


def _bytes_of(lines: list[_Line]) -> bytes:
    return b"".join(line.text + b"\n" for line in lines)


def _row_of(line: bytes) -> Row | None:
    """A row that this wrote; None for anything else."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and wandb_step(row) >= 0 else None
