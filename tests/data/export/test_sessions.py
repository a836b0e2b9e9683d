"""`rl-cli data export-sessions`: conversations that are named become rows, and no others."""

from __future__ import annotations

import json
from pathlib import Path

from tests.data.rows_kit import run_here
from tests.e2e.cli import rl_cli
from tests.wire.server import Call, Reply, WireServer

KEY = "sk-test-AAAABBBBCCCCDDDD"


def test_a_session_becomes_a_row_that_exports(home: Path, tmp_path: Path) -> None:
    replies = [Reply("I look.", calls=[Call("rl_list_runs", {"limit": 3})]), Reply("There are no runs.")]
    with WireServer(replies) as server:
        where = ["--model", "openai/small", "--base-url", server.openai_url]
        assert rl_cli("ask", f"which runs? {KEY} ann@example.org", *where).code == 0
    [session] = (home / "sessions").glob("*.jsonl")
    other = session.with_stem(f"{session.stem}x")
    other.write_text(session.read_text().replace("which runs?", "something private"))
    target = tmp_path / "sessions.jsonl"
    done = run_here("data", "export-sessions", session.stem, "-o", str(target), "--pii", "email", "--json")
    assert (done.code, done.rows()[0]["rows"], done.rows()[0]["masked"]["email"]) == (0, 1, 1)
    [line] = target.read_text().splitlines()
    assert "private" not in line
    assert KEY not in line
    row = json.loads(line)
    assert [message["role"] for message in row["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert row["messages"][1]["content"] == "which runs? [redacted] [email]"
    assert (row["model"], row["completed"]) == ("openai/small", True)
    assert row["tool_stats"] == {"rl_list_runs": {"count": 1, "success": 1, "failure": 0}}
    assert "rl_list_runs" in {tool["function"]["name"] for tool in row["tools"]}
    assert row["metadata"] == {"session": session.stem}
    assert run_here("data", "redact", "--check", str(target), "--pii", "email").code == 0
    out = tmp_path / "trl.jsonl"
    assert run_here("data", "export", "-i", str(target), "--format", "trl", "-o", str(out)).code == 0
    [call] = json.loads(out.read_text())["messages"][2]["tool_calls"]
    assert call["function"]["arguments"] == {"limit": 3}


def test_no_session_is_exported_unless_named(tmp_path: Path) -> None:
    done = run_here("data", "export-sessions", "-o", str(tmp_path / "x.jsonl"))
    assert done.code == 2
    none = run_here("data", "export-sessions", "latest", "-o", str(tmp_path / "x.jsonl"))
    assert (none.code, "no sessions yet" in none.err) == (2, True)
