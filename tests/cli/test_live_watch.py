"""What a person sees of a run that is watched on a terminal."""

from __future__ import annotations

import io
import math
import os
import signal
from pathlib import Path

import pytest

from rl_cli.cli.live_block import LiveBlock, Piece
from rl_cli.cli.watch_view import Watched, block
from rl_cli.cli.wrapping import display_width
from rl_cli.core.files import write_json
from rl_cli.core.processes import ProcessIdentity
from rl_cli.runs.progress import Progress
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.store import create_run
from rl_cli.runs.times import now_text, time_text
from tests.e2e.terminal import CTRL_C, Terminal
from tests.runs.kit import replay_config

NOW = 1_800_000_000.0
HOSTILE = "\x1b[2J\x1b]0;title\x07 \u202e evil\nline"


class Screen:
    """A terminal that knows what `LiveBlock` writes: its lines after each frame, none of them rewrapped."""

    def __init__(self) -> None:
        self.lines: list[str] = [""]
        self.row = 0

    def take(self, text: str) -> None:
        while text:
            if text.startswith("\x1b["):
                body, kind = text[2:].split(next(c for c in text[2:] if c.isalpha()), 1)[0], ""
                kind = text[2 + len(body)]
                text = text[3 + len(body) :]
                if kind == "A":
                    self.row -= int(body)
                elif kind == "J":
                    self.lines[self.row :] = [""]
                elif kind == "K":
                    self.lines[self.row] = self._column
                continue
            char, text = text[0], text[1:]
            if char == "\r":
                self._column = ""
            elif char == "\n":
                self.row, self._column = self.row + 1, ""
                if self.row == len(self.lines):
                    self.lines.append("")
            else:
                self._column += char

    _column = ""


def _ago(minutes: float) -> str:
    return time_text(NOW - 60 * minutes)


def watched(step: int = 40, **row: float) -> Watched:
    progress = Progress(100)
    events = [
        {"kind": "phase", "name": "grpo"},
        {"kind": "evaluation", "which": "initial", "accuracy": 0.29, "n": 400},
        *({"kind": "alert", "rule": f"r{i}", "message": HOSTILE, "time": _ago(5 - i)} for i in range(5)),
    ]
    rows = [
        {"phase": "grpo", "step": i, "reward/mean": i / 100, "loss": 0.1, "seconds/step": 2.0, **row}
        for i in range(1, step + 1)
    ]
    progress.feed(rows, events)
    state = {"state": "running", "reason": None, "started": time_text(NOW - 125)}
    return Watched("run-1", state, progress, NOW + 240, ["W&B says crashed; here it runs (step 40)"])


def text_of(lines: object) -> str:
    return "\n".join("".join(piece.text for piece in line) for line in lines)  # type: ignore[attr-defined]


def test_the_block_says_what_matters() -> None:
    told = text_of(block(watched(), 120, 30, NOW))
    for part in (
        "run-1  running  grpo  since 2 min 05 s",
        "40%",
        "40/100 steps, 2 min 00 s left",
        "▁",
        "best 0.4 at step 40",
        "initial 0.290",
        "alerts (5)  3 min ago   r2",
        "W&B says crashed; here it runs",
        "in 4 min 00 s",
    ):
        assert part in told, part
    assert "1 min ago   r4: " in told
    assert "r1: " not in told
    assert "loss NaN" in text_of(block(watched(loss=math.nan), 120, 30, NOW))


def test_a_resumed_run_is_told_with_its_attempt_and_the_phase_it_is_in_now() -> None:
    one = watched()
    one.progress.feed([], [{"kind": "phase", "name": "evaluation"}])
    one.progress.feed([], [{"kind": "resumed", "attempt": 2, "step": 30}])
    alert = {"kind": "alert", "rule": "kl_high", "message": "KL is 3.1", **one.progress.reached()}
    one.progress.feed([], [alert])
    told = text_of(block(one, 120, 30, NOW))
    assert told.startswith("run-1  running  grpo  attempt 2  since 2 min 05 s")
    assert "kl_high at step 30: KL is 3.1" in told


@pytest.mark.parametrize("columns", [20, 47, 80, 200])
def test_a_frame_fits_the_terminal_and_obeys_nobody(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((columns, 10)))
    for name in ("COLUMNS", "LINES"):  # readline sets them where a test before this one has loaded it
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    live = LiveBlock(out)
    width, rows = live.size()
    live.paint(block(watched(), width, rows, NOW))
    frame = out.getvalue()
    screen = Screen()
    screen.take(frame)
    assert all(display_width(line) < columns for line in screen.lines)
    assert len(screen.lines) <= 10
    assert "\x1b[2J" not in frame
    assert "\x07" not in frame
    assert "\u202e" not in frame


def test_frames_replace_each_other_below_what_stays() -> None:
    out, screen = io.StringIO(), Screen()
    live = LiveBlock(out)
    for lines, above in (
        (["one", "two", "three"], []),
        (["one"], ["an event"]),
        (["uno", "dos"], []),
        (["uno", "dos"], []),
        ([], ["the end"]),
    ):
        before = out.tell()
        live.paint([[Piece(line)] for line in lines], above)
        screen.take(out.getvalue()[before:])
        kept = [line for line in screen.lines if line]
        assert kept[len(kept) - len(lines) :] == lines
    assert [line for line in screen.lines if line] == ["an event", "the end"]


def test_a_window_that_is_being_dragged_is_painted_when_it_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    size = [100]
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((size[0], 10)))
    for name in ("COLUMNS", "LINES"):  # readline sets them where a test before this one has loaded it
        monkeypatch.delenv(name, raising=False)
    out = io.StringIO()
    live = LiveBlock(out)
    line = [Piece("Ctrl-C leaves the run alone")]
    live.paint([line])
    for size[0] in (60, 50, 20):
        before = out.tell()
        live.paint([line])
        assert out.tell() == before
    live.paint([line])
    assert "\x1b[2A\x1b[J" in out.getvalue()[before:]  # what was one line has become two


def live_run(home: Path) -> RunDir:
    """A run that this process keeps alive, and no supervisor."""
    run = create_run(replay_config("demo"), home)
    owner = ProcessIdentity.current().to_dict()
    changes = {"state": "running", "supervisor": owner, "started": now_text(), "heartbeat": now_text()}
    write_json(
        run.path / "state.json", {**run.state(), **changes, "running_since": now_text(), "total_steps": 40}
    )
    for step in range(1, 11):
        run.append_metrics("grpo", step, **{"reward/mean": step / 20, "seconds/step": 1.0})
    return run


def test_watching_on_a_terminal_repaints_tells_news_and_leaves_the_cursor(home: Path) -> None:
    run = live_run(home)
    with Terminal("runs", "watch", "latest") as watching:
        watching.expect("10/40 steps, 30 s left")
        run.append_event("alert", rule="kl_high", message="KL is 3.1", action="look", severity="warning")
        watching.expect("alert (kl_high): KL is 3.1")
        watching.expect("kl_high: KL is 3.1")
        watching.type(CTRL_C)
        watching.expect("goes on without you")
        assert watching.code() == 130
        assert "\x1b[?25l" not in watching.raw
    with Terminal("runs", "watch", "latest") as watching:
        watching.expect("10/40 steps")
        watching.process.send_signal(signal.SIGTERM)
        assert watching.code() == -signal.SIGTERM
        assert "\x1b[?25l" not in watching.raw
        assert watching.raw.endswith("\x1b[J")
