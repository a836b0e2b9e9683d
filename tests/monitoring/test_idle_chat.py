"""At the chat's prompt the session's run is judged in the background, and only what matters is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from rl_cli.agent.session_store import open_session
from rl_cli.runs.store import list_runs
from tests.e2e.terminal import CTRL_D, Terminal
from tests.monitoring.kit import decides
from tests.monitoring.test_watched_turns import call, trains
from tests.runs.kit import steps, until_over

OFTEN = {"health.first_check_seconds": 0.5, "health.check_every_seconds": 1}
LEARNS = {"reward/mean": [0.2, 0.8]}


def script(home: Path, play: Any, *replies: Any) -> str:
    flow = trains(home, play, OFTEN, start=call("rl_start_training"))
    started = {"when": {"last_tool": "rl_start_training", "ok": True}, "text": "It is started."}
    path = home / "script.yaml"
    path.write_text(yaml.safe_dump([*replies, *flow, started]))
    return f"scripted/{path}"


def test_it_speaks_up_at_the_end_and_is_silent_before(runs: Path) -> None:
    runs.mkdir()
    play = {"total_steps": 60, "play": [steps(60, every=0.1, **LEARNS)]}
    model = script(
        runs,
        play,
        decides("due", "continue", "nothing to say", repeat=True),
        decides("alert", "continue", "nothing to say", repeat=True),
        decides("end", "continue", "it ended", "All steps are done."),
        {"when": {"contains": "and now"}, "text": "Nothing runs."},
    )
    with Terminal("chat", "--yes", "--model", model) as chat:
        chat.expect("/help")
        chat.say("Train it")
        chat.expect("It is started.")
        chat.expect("All steps are done.", 60)
        chat.expect("Report:")
        assert "nothing to say" not in chat.seen
        chat.say("and now?")
        chat.expect("Nothing runs.")
        chat.type(CTRL_D)
        assert chat.code() == 0
    [run] = list_runs(runs)
    made = [event for event in run.events() if event["kind"] == "decision" and "why" in event]
    assert len(made) >= 3
    session = open_session(runs, "latest")
    said = [m["content"] or "" for m in session.history.messages() if m["role"] == "assistant"]
    session.close()
    assert [text.split("\n")[0] for text in said if text][-2:] == ["All steps are done.", "Nothing runs."]


def test_a_run_that_goes_wrong_is_stopped_and_that_is_said(runs: Path) -> None:
    runs.mkdir()
    play = {"total_steps": 2000, "play": [steps(2000, every=0.1, **LEARNS)]}
    model = script(runs, play, decides("", "stop", "the reward is odd"), decides("end", "continue"))
    with Terminal("chat", "--yes", "--model", model) as chat:
        chat.expect("/help")
        chat.say("Train it")
        chat.expect("is being stopped: the reward is odd", 60)
        [run] = list_runs(runs)
        until_over(run)
        chat.type(CTRL_D)
        assert chat.code() == 0
    assert run.state()["reason"] == "assistant: the reward is odd"
