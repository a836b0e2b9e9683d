"""A session's file that lost lines, or vanished, never sends a conversation to another model than its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rl_cli.agent.session_store import list_sessions, new_session, open_session
from rl_cli.cli.answerer import choose
from rl_cli.core.errors import BadUsage
from rl_cli.core.messages import assistant, tool_call, tool_result, user
from rl_cli.core.settings import Settings
from tests.agent.talk import Playing, calls, talk
from tests.e2e.cli import rl_cli

LOCAL = "ollama/qwen3"


def lines(home: Path) -> list[dict]:
    return [json.loads(line) for line in list_sessions(home)[0].path.read_text("utf-8").splitlines()]


def lose(home: Path, *kinds: str) -> None:
    """The lines of these kinds are torn."""
    path = list_sessions(home)[0].path
    rows = path.read_text("utf-8").splitlines()
    torn = [row[: len(row) // 2] if json.loads(row)["kind"] in kinds else row for row in rows]
    path.write_text("".join(row + "\n" for row in torn), "utf-8")


def test_each_turn_says_again_who_answers(home: Path) -> None:
    talk(home, Playing("hello", name=LOCAL), "a secret", state={"base_url": "http://localhost:9/v1"})
    lose(home, "session", "model", "state")
    session = open_session(home, "latest")
    session.close()
    assert session.history.model == LOCAL
    assert list_sessions(home)[0].model == LOCAL
    policy = choose(None, None, Settings(), session.history).policy
    assert (policy.name, policy.endpoint.base_url) == (LOCAL, "http://localhost:9/v1")


def test_a_session_whose_model_is_lost_is_sent_to_nobody(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    session = new_session(home, LOCAL)
    session.record("message", message=user("a secret"))
    session.record("message", message=assistant("I keep it"))
    session.close()
    lose(home, "session")
    history = open_session(home, "latest").history
    for settings in (Settings(), Settings(model="openai/x")):
        with pytest.raises(BadUsage, match="who answered in this session is not known"):
            choose(None, None, settings, history)
    assert choose("builtin/operator", None, Settings(), history).policy.name == "builtin/operator"
    told = rl_cli("ask", "and now?", "--session", "latest")
    assert (told.code, told.out) == (2, "")
    assert "--model" in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize("how", ["deleted", "emptied", "with its folder"])
def test_a_file_that_vanished_under_a_chat_is_written_again(home: Path, how: str) -> None:
    session = new_session(home, LOCAL)
    session.record("system", content="be kind")
    session.record("state", state={"base_url": "http://localhost:9/v1", "run_id": "r"})
    session.record("message", message=user("early"))
    session.record("compaction", summary="it was early", digest={}, kept=[])
    session.record("message", message=user("train"))
    call = tool_call("c", "status", "{}")
    session.record("message", message=assistant(None, [call]))
    session.record("result", call_id="c", name="status", ok=True, content='{"ok": true}')
    before = session.history.messages()
    if how == "deleted":
        session.path.unlink()
    elif how == "emptied":
        session.path.write_text("")
    else:
        shutil.rmtree(session.path.parent)
    session.record("message", message=user("and now?"))
    session.close()
    again = open_session(home, session.id)
    again.close()
    assert before[-1] == tool_result(call, '{"ok": true}')
    assert again.history.messages() == [*before, user("and now?")]
    assert (again.history.model, again.history.system) == (LOCAL, "be kind")
    assert again.history.state == {"base_url": "http://localhost:9/v1", "run_id": "r"}
    assert [row["kind"] for row in lines(home)][:3] == ["session", "system", "state"]
    assert list_sessions(home)[0].model == LOCAL


def test_a_file_that_vanishes_within_a_turn_has_the_whole_turn_at_its_end(home: Path) -> None:
    def vanish(messages: list) -> str:
        list_sessions(home)[0].path.unlink()
        return "done"

    talk(home, Playing(calls(("status", {})), vanish), "how is it?")
    session = open_session(home, "latest")
    session.close()
    roles = [message["role"] for message in session.history.messages()]
    assert (session.history.model, roles) == ("test/playing", ["user", "assistant", "tool", "assistant"])
