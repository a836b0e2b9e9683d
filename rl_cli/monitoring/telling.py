"""What a monitor says of the runs it watches: their ends, each once, where a person is needed, trouble."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rl_cli.monitoring.endings import Endings
from rl_cli.monitoring.watching import Watched
from rl_cli.runs.checks.due_checks import NEEDS_PERSON
from rl_cli.runs.checks.monitor import next_check_seconds
from rl_cli.runs.outcome import is_incomplete, outcome_of
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import State
from rl_cli.runs.times import duration
from tools.spec import RULES, Decision

Tell = Callable[[str, dict[str, Any]], None]
"""Receives a run's id and an event: of it (see `Follower`), or of the monitor (trouble, attached, live,
end)."""


class Telling:
    """Of the runs of one home. Reads their files, so it may take as long as these do.

    Args:
        home: RL_CLI_HOME.
        tell: See Tell.
    """

    def __init__(self, home: Path, tell: Tell) -> None:
        self.tell = tell
        self.endings = Endings(home)

    def conclude(self, run: RunDir, watched: Watched, followed: bool = True) -> bool:
        """Leaves word for the person where one is needed; returns whether one is.

        Args:
            run: The run.
            watched: Why watching it ended.
            followed: Somebody tells the run's events anyway.
        """
        outcome, decision = watched.outcome, watched.decision
        if outcome.why == "end":
            return self.end(run, outcome.state, decision)
        if decision is None or decision.what not in ("ask", "change"):
            return False
        word = {
            "rule": NEEDS_PERSON,
            "severity": "warning",
            "message": decision.message or decision.reason,
            "action": f"answer in rl-cli chat, or: rl-cli runs stop {run.id}",
            "figures": {"decision": decision.what},
            **outcome.progress.reached(),
        }
        run.append_event("alert", **word)
        if not followed:
            self.tell(run.id, {"kind": "alert", **word})
        return True

    def end(self, run: RunDir, state: State, decision: Decision | None = None) -> bool:
        """Tells it with the model's last words, if there are any; returns whether a person is needed."""
        self.endings.told(run.id, state)
        event = {"kind": "end", "message": outcome_of(run)}
        if state.get("ended"):
            event["time"] = state["ended"]
        if decision and decision.by != RULES:
            event |= {"by": decision.by, "said": decision.message}
        self.tell(run.id, event)
        return is_incomplete(state)

    def live(self, run: RunDir) -> None:
        state, left = run.state(), next_check_seconds(run)
        of = f"/{state['total_steps']}" if state.get("total_steps") else ""
        check = "no check is due yet" if left is None else f"next check in {duration(left)}"
        message = f"{state['state']}, step {state.get('step') or 0}{of}, {check}"
        self.tell(run.id, {"kind": "live", "message": message})

    def trouble(self, run_id: str, what: str) -> None:
        self.tell(run_id, {"kind": "trouble", "what": what})
