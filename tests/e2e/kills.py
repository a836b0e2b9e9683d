"""A chat that is killed at any moment, gone on with, and must come to the same end."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_cli.agent.history import History
from rl_cli.agent.session_file import read_events
from rl_cli.agent.session_store import list_sessions
from rl_cli.runs.store import list_runs
from tests.agent.talk import check_well_formed
from tests.e2e.cli import command

SCRIPT = Path(__file__).parent / "scripts" / "killed.yaml"
SENTENCES = ("sentence one: prepare", "sentence two: begin", "sentence three: how did it end?")
LAST_WORDS = "It ended as finished."
PLAY = "- {phase: grpo}\n- repeat: {count: 8, every: 0.02, values: {loss: 0.1, reward/mean: [0.2, 0.8]}}\n"
OWNED_WITHIN_SECONDS = 10.0
"""A supervisor that outlives the chat which started it owns its run after this long."""


@dataclass
class Trial:
    """What became of one conversation."""

    kills: int
    """How often the chat was killed before it had ended by itself."""
    cut_off: str
    """What was under way at the first kill: the last kind of event, and its tool."""
    seconds: float


def script_in(folder: Path) -> Path:
    """The script, with a replay that takes a moment."""
    play, script = folder / "play.yaml", folder / "script.yaml"
    play.write_text(PLAY)
    script.write_text(SCRIPT.read_text().replace("PLAY", str(play)))
    return script


def talk_until(home: Path, script: Path, kill_after: float | None) -> tuple[int | None, str]:
    """Goes on with the conversation over a pipe; the exit code is None where it was killed."""
    left = remaining(home)
    resume = ["--resume", "latest"] if list_sessions(home) else []
    process = subprocess.Popen(
        command("chat", "--yes", "--model", f"scripted/{script}", *resume),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"RL_CLI_HOME": str(home)},
    )
    typed = "".join(f"{sentence}\n" for sentence in left)
    try:
        out, _ = process.communicate(typed, timeout=120 if kill_after is None else kill_after)
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
        return (None if kill_after is not None else process.returncode), out
    return process.returncode, out


def remaining(home: Path) -> list[str]:
    """The sentences whose turns have not ended."""
    ended, asked = 0, False
    for event in events(home):
        asked = asked or (event["kind"] == "message" and event["message"]["role"] == "user")
        if event["kind"] == "end" and asked:
            ended, asked = ended + 1, False
    return list(SENTENCES[ended:])


def events(home: Path) -> list[dict[str, Any]]:
    sessions = list_sessions(home)
    return list(read_events(sessions[0].path)) if sessions else []


def killed_and_resumed(folder: Path, seed: int, seconds: float) -> Trial:
    """One conversation that is killed once or twice, then gone on with to its end; checks what must hold.

    Args:
        folder: For its home and its script.
        seed: Of the moments.
        seconds: About how long the conversation takes undisturbed.
    """
    chance, started = random.Random(seed), time.monotonic()
    home, script = folder / "home", script_in(folder)
    kills, cut_off = 0, ""
    for _ in range(chance.choice([1, 1, 2])):
        code, out = talk_until(home, script, chance.uniform(0.0, seconds))
        assert code in (None, 0), out
        kills += code is None
        check_session(home)
        cut_off = cut_off or _under_way(home)
        wait_until_owned(home)
    code, out = talk_until(home, script, None)
    assert code == 0, out
    check_session(home)
    assert remaining(home) == []
    told = [e["message"]["content"] for e in events(home) if e["kind"] == "message"]
    assert told[-1].splitlines()[0] == LAST_WORDS, out
    states = [run.state() for run in list_runs(home)]
    began = [state for state in states if state.get("supervisor")]
    assert [state["state"] for state in began] == ["finished"], states
    return Trial(kills, cut_off, time.monotonic() - started)


def check_session(home: Path) -> None:
    """Its file is valid: whole lines but for one that a kill tore, and a well-formed conversation."""
    sessions = list_sessions(home)
    if not sessions:
        return
    assert len(sessions) == 1
    lines = sessions[0].path.read_bytes().split(b"\n")
    torn = [line for line in lines if line and not _is_event(line)]
    assert len(torn) <= 2, torn  # one for each kill
    history, made, run = History(), 0, 0
    for event in read_events(sessions[0].path):
        history.apply(event)
        made += sum(c["function"]["name"] == "rl_start_training" for c in _calls(event))
        run += event["kind"] == "call" and event["call"]["function"]["name"] == "rl_start_training"
    check_well_formed(history.messages())
    assert run <= made  # nothing runs but what the model called for, once


def wait_until_owned(home: Path) -> None:
    """A run that was being started when the chat was killed comes up, unless the kill came before."""
    deadline = time.monotonic() + OWNED_WITHIN_SECONDS
    while time.monotonic() < deadline:
        created = [run for run in list_runs(home) if run.state()["state"] == "created"]
        if not any(_supervisor_is_coming(run.path) for run in created):
            return
        time.sleep(0.05)


def _supervisor_is_coming(path: Path) -> bool:
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(path).encode() in process.read_bytes():
                return True
    return False


def _under_way(home: Path) -> str:
    happened = events(home)
    if not happened:
        return "nothing"
    call = happened[-1].get("call")
    return f"{happened[-1]['kind']} {call['function']['name']}" if call else str(happened[-1]["kind"])


def _calls(event: dict[str, Any]) -> list[dict[str, Any]]:
    return event["message"].get("tool_calls", []) if event["kind"] == "message" else []


def _is_event(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
