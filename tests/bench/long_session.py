"""Opening a session of 5,000 turns, in time and memory: `python -P -m tests.bench.long_session`.

A chat on a terminal, from the start of its process to the prompt; beside it a session of one turn.
Figures are medians; memory is the most that the process ever held.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

import psutil

from rl_cli.agent.session_store import new_session
from rl_cli.core.json_text import to_json
from rl_cli.core.messages import assistant, tool_call, user
from tests.e2e.terminal import CTRL_D, Terminal

TURNS = 5_000
RESULT_CHARACTERS = 1_500
ROUNDS = 7


def write_session(home: Path, turns: int) -> Path:
    """A session as the operator leaves it: per turn a request, a call with its result, and an answer."""
    session = new_session(home, "builtin/operator")
    for n in range(turns):
        call = tool_call(f"call_{n}", "rl_check_status", "{}")
        content = to_json(
            {"ok": True, "run": {"id": "x", "step": n}, "recent": "0.25 " * (RESULT_CHARACTERS // 5)}
        )
        session.record("message", message=user(f"how is it going, {n}?"))
        session.record("message", message=assistant("Looking at the run.", [call]))
        session.record("call", call=call)
        session.record(
            "result", call_id=call["id"], name="rl_check_status", ok=True, seconds=0.1, content=content
        )
        session.record("message", message=assistant(f"It is at step {n}."))
        session.record("end", stop="finished", error=None)
    session.record("state", state={})
    session.close()
    return session.path


def open_once(home: Path, session: str) -> tuple[float, float]:
    """Seconds from the start of the process to its prompt, and its peak memory in MB."""
    started = time.monotonic()
    with Terminal("chat", "--resume", session, RL_CLI_HOME=str(home)) as chat:
        chat.expect("Ctrl-D to leave")
        chat.expect(">")
        seconds = time.monotonic() - started
        peak = psutil.Process(chat.process.pid).memory_info().rss / 1e6
        status = Path(f"/proc/{chat.process.pid}/status")
        if status.exists():
            peak = int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024 / 1e6
        chat.type(CTRL_D)
        chat.code()
    return seconds, peak


def main() -> None:
    os.environ["RL_CLI_MODEL"] = "builtin/operator"
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        paths = {turns: write_session(home, turns) for turns in (1, TURNS)}
        measured: dict[int, list[tuple[float, float]]] = {turns: [] for turns in paths}
        for _ in range(ROUNDS + 1):
            for turns, path in paths.items():
                measured[turns].append(open_once(home, path.stem))
        seconds, peak = {}, {}
        for turns, figures in measured.items():
            seconds[turns] = statistics.median(s for s, _ in figures[1:])  # the first warms the caches
            peak[turns] = max(p for _, p in figures)
        size = paths[TURNS].stat().st_size / 1e6
    opening = seconds[TURNS] - seconds[1]
    print(f"a session of {TURNS:,} turns ({size:.1f} MB): prompt after {seconds[TURNS]:.2f} s,")
    print(f"  opening it takes {opening:.2f} s of that (promised: 1); {peak[TURNS]:.0f} MB (promised: 150)")
    print(f"a session of 1 turn: prompt after {seconds[1]:.2f} s; {peak[1]:.0f} MB")


if __name__ == "__main__":
    main()
