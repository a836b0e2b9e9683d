"""The replay backend: plays a run from a YAML file. It trains nothing.

For dry runs, for showing what alerts look like, and for tests of everything around a trainer: to the
supervisor it is a worker like any other. `rl-cli runs start ENV --backend replay:FILE`, where FILE is a
path or one of `demo`, `nan`, `crash`, `stall`.

The file is a list of entries, or a mapping
{total_steps, play: [...], on_stop: [...], helpers: {NAME: [...]}}. `on_stop` is played when the run is asked
to stop, which is noticed between steps and during delays; `helpers` by processes beside the trainer, which
are not asked and end with it. At the end of the list the run is finished. Entries:

    - phase: grpo                  loading, sft, evaluation, grpo or saving
    - ready: true                  when the worker counts as loaded; without it: before the first entry
    - step: 3                      a row of metrics: figures beside it, and `phase: sft` (default grpo)
      loss: 0.4
      reward/mean: 0.3
    - repeat:                      `count` rows
        count: 20
        step_from: 1               number of the first
        every: 0.5                 seconds before each (default 0)
        phase: grpo
        noise: 0.05                relative, drawn from the run's seed (default 0)
        values: {loss: 0.1, reward/mean: [0.2, 0.8]}       a number, or a ramp [first, last]
    - delay: 0.5                   seconds
    - evaluation: {which: initial, n: 400, accuracy: 0.22}            split and step where known
    - sample: {prompt: ..., completion: ..., reward: 1.0}             step: the last one
    - checkpoint: 10               a folder, with the event
    - warm_start: {accuracy: 0.22, note: ...}
    - log: a line for the trainer's log
    - nan: loss                    the next row, with NaN for this figure
    - child: 60                    starts a process that sleeps so many seconds
    - setsid: 60                   the same in a session of its own, deaf to SIGTERM, left by its parent
    - listen: true                 serves on the run's port (MASTER_PORT), as the first of several ranks does
    - stall: true                  nothing more, for ever, deaf to requests; `deaf`: to SIGTERM too
    - fail: a reason               ends in good order, as failed
    - crash: a message             raises
    - exit: 3                      ends without a word
    - kill: 9                      sends itself a signal

A replay that is resumed reads the checkpoint that it is resumed from and plays on after it; rows of later
steps are played again. The entries nan, stall, fail, crash, exit and kill are faults: attempt k leaves out
the first k - 1 of the play (in place of `nan` a row without it), so that a play with three kills can be
resumed three times. A `stall` right after a `nan`, which is there to wait for the end, is one fault with it.

A replay has the steps of its file: grpo.steps of the config is set to `total_steps`, or to the last step.
"""

from __future__ import annotations

import math
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from rl_cli.config.tree import RunConfig
from rl_cli.config.yaml_text import dump_yaml, parse_yaml
from rl_cli.core.files import read_json, write_json
from rl_cli.core.own_process import drop_keys, redact_output
from rl_cli.core.redaction import redact
from rl_cli.runs.checkpoints import FOLDER, WRITING
from rl_cli.runs.run_dir import RunDir
from rl_cli.training.replay_file import COPY, Entry, Play, find_file, read_play
from rl_cli.training.saving import save

FAULTS = ("nan", "stall", "fail", "crash", "exit", "kill")


def prepare(config: RunConfig) -> RunConfig:
    """The config with the file's whole path and its steps; raises BadUsage where the file has mistakes."""
    path = find_file(config.backend.file or "")
    steps = read_play(path).steps or config.grpo.steps
    return config.model_copy(
        update={
            "backend": config.backend.model_copy(update={"file": str(path)}),
            "grpo": config.grpo.model_copy(update={"steps": steps}),
        }
    )


def files_of(config: RunConfig) -> dict[str, str]:
    """The play without secrets, so that the run plays what was there when it was made."""
    path = find_file(config.backend.file or "")
    read_play(path)
    text = path.read_text("utf-8")
    play = parse_yaml(text, str(path))
    clean = redact(play)
    return {COPY: text if clean is play else dump_yaml(clean)}


class Stopped(Exception):
    """The run was asked to stop."""


class Player:
    """Plays entries into a run's directory, from where the run was resumed on."""

    def __init__(self, run: RunDir, seed: int) -> None:
        self.run = run
        self.random = random.Random(seed)
        self.step = 0
        self.row: dict[str, Any] = {}
        resume = run.resume()
        self.start = _loaded_step(resume.checkpoint) if resume and resume.checkpoint else 0
        self.behind = self.start > 0
        """Before the checkpoint that the run was resumed from."""
        self.old_faults = resume.attempt - 1 if resume else 0

    def play(self, entries: list[Entry]) -> None:
        for i, entry in enumerate(entries):
            if entry.kind in FAULTS and self.old_faults:
                last = entries[i + 1 :][:1]
                if not (last and last[0].kind == "stall" and entry.kind == "nan"):
                    self.old_faults -= 1
                if entry.kind == "nan":
                    self._step(self.step + 1, self.row)
            elif self.behind and entry.kind not in ("step", "repeat", "nan"):
                self.behind = not (entry.kind == "checkpoint" and entry.value == self.start)
            else:
                extra = {"figures": entry.extra} if entry.extra else {}
                getattr(self, f"_{entry.kind}")(entry.value, **extra)

    def check_stop(self) -> None:
        if self.run.stop_requested():
            raise Stopped

    def _phase(self, name: str) -> None:
        self.run.append_event("phase", name=name)

    def _ready(self, _: bool) -> None:
        """Done by main(), which splits the list here."""

    def _step(self, step: int, figures: dict[str, Any] | None = None) -> None:
        row = dict(figures or {})
        phase = row.pop("phase", "grpo")
        self.step, self.row = step, {"phase": phase, **row}
        if not (self.behind and (phase == "sft" or step <= self.start)):
            self.check_stop()
            self.run.append_metrics(phase, step, **row)

    def _repeat(self, spec: dict[str, Any]) -> None:
        count, first = spec["count"], spec.get("step_from", 1)
        for i in range(count):
            self._delay(spec.get("every", 0))
            at = i / (count - 1) if count > 1 else 0.0
            figures: dict[str, Any] = {"phase": spec.get("phase", "grpo")}
            for name, ramp in spec["values"].items():
                start, end = ramp if isinstance(ramp, list) else (ramp, ramp)
                noise = 1 + spec.get("noise", 0) * self.random.uniform(-1, 1)
                figures[name] = round((start + (end - start) * at) * noise, 6)
            self._step(first + i, figures)

    def _delay(self, seconds: float) -> None:
        end = time.monotonic() + (0 if self.behind else seconds)
        while (left := end - time.monotonic()) > 0:
            self.check_stop()
            time.sleep(min(0.1, left))

    def _evaluation(self, fields: dict[str, Any]) -> None:
        split = "validation" if fields["which"] == "validation" else "test"
        self.run.append_event("evaluation", **{"split": split, "n": 100, "step": self.step, **fields})

    def _sample(self, fields: dict[str, Any]) -> None:
        self.run.append_sample(**{"step": self.step, **fields})

    def _checkpoint(self, step: int) -> None:
        folder = self.run.path / FOLDER / WRITING
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "replay.json", {"step": step})
        save(self.run, step, folder)

    def _warm_start(self, fields: dict[str, Any]) -> None:
        self.run.append_event("warm_start", **fields)

    def _log(self, text: str) -> None:
        print(text, flush=True)

    def _nan(self, name: str) -> None:
        self._step(self.step + 1, {**self.row, name: math.nan})

    def _child(self, seconds: float) -> None:
        subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])

    def _setsid(self, seconds: float) -> None:
        sleep = f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep({seconds})"
        leave = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True)"
        subprocess.run([sys.executable, "-c", leave, sys.executable, "-c", sleep], check=True)

    def _listen(self, _: bool) -> None:
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        self.server = socket.create_server(address)

    def _stall(self, how: bool | str) -> NoReturn:
        if how == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(3600)

    def _fail(self, reason: str) -> NoReturn:
        self.run.write_exit("trainer", 1, "failed", reason)
        raise SystemExit(1)

    def _crash(self, message: str) -> NoReturn:
        raise RuntimeError(message)

    def _exit(self, code: int) -> NoReturn:
        sys.stdout.flush()
        os._exit(code)

    def _kill(self, number: int) -> None:
        os.kill(os.getpid(), number)


def _loaded_step(checkpoint: Path) -> int:
    """The step that a checkpoint of a replay was written at, as it says itself."""
    step: int = read_json(checkpoint / "replay.json")["step"]
    print(f"loaded {checkpoint.name}: written at step {step}", flush=True)
    return step


def helpers(run: RunDir) -> list[str]:
    """The names of the processes that the trainer of `run` needs beside it."""
    return list(_play_of(run).helpers)


def _play_of(run: RunDir) -> Play:
    copy = run.path / COPY
    return read_play(copy if copy.is_file() else find_file(run.config().backend.file or ""))


def help_trainer(folder: str, name: str) -> int:
    """Plays a helper process of the run in `folder`, which nobody asks to stop: it is ended."""
    redact_output()
    drop_keys()
    run = RunDir(folder)
    player = Player(run, run.config().seed)
    player.check_stop = lambda: None  # type: ignore[method-assign]
    player.play(_play_of(run).helpers[name])
    run.write_exit(name, 0, "finished", "played to its end")
    return 0


def main(folder: str) -> int:
    """Plays the run in `folder`; returns the exit code."""
    redact_output()
    drop_keys()
    run = RunDir(folder)
    config = run.config()
    play = _play_of(run)
    player = Player(run, config.seed)
    marks = [i for i, entry in enumerate(play.entries) if entry.kind == "ready"]
    loading = marks[0] if marks else 0
    try:
        player.play(play.entries[:loading])
        run.mark_ready("trainer", total_steps=play.total_steps)
        player.play(play.entries[loading:])
    except Stopped:
        request = run.stop_requested() or {}
        reason = f"stopped at step {player.step} as {request.get('by')} asked: {request.get('reason')}"
        player.check_stop = lambda: None  # type: ignore[method-assign]
        player.play(play.on_stop)
        run.write_exit("trainer", 0, "stopped", reason)
    else:
        run.write_exit("trainer", 0, "finished", f"played to its end, {player.step} steps")
    return 0


if __name__ == "__main__":
    sys.exit(help_trainer(sys.argv[1], sys.argv[3]) if sys.argv[2:] else main(sys.argv[1]))
