"""`rl-cli sessions`: what was said can be listed, read and taken along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rl_cli.runs.times import local_zone
from tests.e2e.cli import rl_cli
from tests.e2e.terminal import Terminal
from tests.wire.server import Call, Reply, WireServer

KEY = "sk-test-AAAABBBBCCCCDDDD"


@pytest.fixture
def session(home: Path) -> str:
    """The id of a session of two turns, the first with a call."""
    replies = [
        Reply("I look.", calls=[Call("rl_list_runs", {"limit": 3})]),
        Reply("There are no runs.\n```\nfenced\n```"),
        Reply("As before."),
    ]
    with WireServer(replies) as server:
        where = ["--model", "openai/small", "--base-url", server.openai_url]
        assert rl_cli("ask", f"which runs? {KEY}", *where).code == 0
        assert rl_cli("ask", "and now?", "--session", "latest").code == 0
    [file] = (home / "sessions").glob("*.jsonl")
    return file.stem


def test_a_list_names_every_session(session: str):
    assert rl_cli("ask", "help me").code == 0
    told = rl_cli("sessions", "list")
    assert told.code == 0
    lines = told.out.splitlines()
    used = ["last", "used", f"({local_zone()})"]
    assert lines[0].split() == ["session", "turns", "model", *used, "first", "request"]
    assert lines[1].endswith("help me")
    assert lines[2].split()[:3] == [session, "2", "openai/small"]
    rows = rl_cli("sessions", "list", "--json", "--limit", "1").rows()
    assert [(row["turns"], row["title"], row["model"]) for row in rows] == [
        (1, "help me", "builtin/operator")
    ]


def test_a_conversation_is_shown_as_it_went(session: str):
    told = rl_cli("sessions", "show", session[:-1])
    assert told.code == 0
    for part in (
        "> which runs? [redacted]",
        "I look.",
        '  → rl_list_runs({"limit": 3})',
        "  ✓ rl_list_runs",
        "> and now?",
        "As before.",
    ):
        assert part in told.out
    kinds = {row["kind"] for row in rl_cli("sessions", "show", "latest", "--json").rows()}
    assert {"session", "message", "call", "result", "end"} <= kinds


def test_an_export_holds_every_message(session: str, tmp_path: Path):
    target = tmp_path / "out.jsonl"
    told = rl_cli("sessions", "export", session, "--output", str(target))
    assert (told.code, told.out) == (0, "")
    row = json.loads(target.read_text("utf-8"))
    assert (row["session"], row["model"]) == (session, "openai/small")
    roles = [message["role"] for message in row["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user", "assistant"]
    assert row["messages"][2]["tool_calls"][0]["id"] == row["messages"][3]["tool_call_id"]
    assert KEY not in target.read_text("utf-8")
    told = rl_cli("sessions", "export", session)
    assert told.out.startswith(
        f"# Session {session}\n\nAnswered by openai/small.\n\n## Request\n\nwhich runs?"
    )
    assert "Call of `rl_list_runs`:\n\n```json\n" in told.out


@pytest.mark.parametrize("words", [["show", "nothing"], ["export", "2020"], ["show", ""]])
def test_an_unknown_session_is_bad_usage(words: list[str], session: str):
    told = rl_cli("sessions", *words)
    assert told.code == 2
    assert told.err.count("\n") == 1
    assert session in told.err or not words[1]


def test_an_unknown_session_names_a_few_that_there_are(home: Path):
    for number in range(8):
        (home / "sessions").mkdir(parents=True, exist_ok=True)
        (home / "sessions" / f"20260301-12000{number}-abcd.jsonl").touch()
    told = rl_cli("sessions", "show", "nothing like that")
    assert (told.code, told.err.count("-abcd")) == (2, 5)


def test_a_model_that_goes_on_in_a_circle_is_stopped_and_the_export_says_so(home: Path):
    with WireServer([Reply(calls=[Call("rl_list_runs", {})]) for _ in range(9)]) as server:
        told = rl_cli("ask", "which runs?", "--model", "openai/small", "--base-url", server.openai_url)
    assert told.code == 1
    assert "the turn was ended" in told.err
    assert "*(stuck: the turn was ended" in rl_cli("sessions", "export", "latest").out


def test_without_sessions_it_says_how_to_begin_one():
    assert "rl-cli chat" in rl_cli("sessions", "list").err
    for words in (
        ["sessions", "show", "latest"],
        ["chat", "--resume", "latest"],
        ["ask", "x", "--session", "y"],
    ):
        told = rl_cli(*words)
        assert (told.code, "there are no sessions yet" in told.err) == (2, True)


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b5n\u202eabc"


def test_an_export_never_moves_the_cursor(home: Path):
    with WireServer([Reply(f"It says {HOSTILE}.")]) as server:
        assert rl_cli("ask", "hi", "--model", "openai/m", "--base-url", server.openai_url).code == 0
    piped = rl_cli("sessions", "export", "latest")
    assert "It says \ufffd]0;owned\ufffd\ufffd[2J\ufffd5n\ufffdabc." in piped.out
    rows = [
        json.loads(line)
        for line in rl_cli("sessions", "export", "latest", "--format", "jsonl").out.splitlines()
    ]
    assert rows[0]["messages"][-1]["content"] == f"It says {HOSTILE}."
    commands = [
        ["export", "latest"],
        ["export", "latest", "--format", "jsonl"],
        ["show", "latest"],
        ["show", "latest", "--json"],
        ["list", "--json"],
    ]
    for words in commands:
        with Terminal("sessions", *words) as terminal:
            assert terminal.code() == 0
            assert not set(terminal.raw) & set("\x1b\x07\x9b\u202e"), words
