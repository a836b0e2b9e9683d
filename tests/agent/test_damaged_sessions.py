"""Whatever somebody made of a session's lines: it can be gone on with, listed, shown and exported."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from environments.policies.anthropic.history import turns_of
from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.endpoints.token_estimate import request_tokens
from environments.policies.openai.request import wire_message
from rl_cli.agent import digest
from rl_cli.agent.compaction import compose
from rl_cli.agent.events import sound_event
from rl_cli.agent.session_file import SessionFile, read_events
from rl_cli.agent.session_store import list_sessions, new_session
from rl_cli.cli.session_text import as_markdown, as_row, as_text
from rl_cli.core.messages import assistant, tool_call, user
from tests.agent.talk import check_well_formed
from tests.e2e.cli import rl_cli

KEYS = (
    *("kind", "message", "role", "content", "tool_calls", "id", "function", "name", "arguments", "reasoning"),
    *("provider_state", "anthropic", "openai", "scripted", "type", "text", "used", "state", "draft", "seed"),
    *("run_id", "base_url", "model", "call", "call_id", "ok", "seconds", "kept", "summary", "digest"),
    *("requests", "asked", "answered", "done", "risk", "what", "runs", "stop", "error", "by", "tool_call_id"),
)
KINDS = (
    *("session", "model", "system", "message", "partial", "call", "result", "state", "compaction", "notice"),
    "end",
)
WORDS = st.sampled_from(
    ["", "x", "call", "user", "assistant", "tool", "text", "{}", '{"ok": true}', "\ud800", "[["]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.sampled_from(KINDS)
VALUES = st.recursive(
    SCALARS,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from(KEYS), v, max_size=4),
    max_leaves=8,
)
CALLS = st.fixed_dictionaries(
    {
        "id": WORDS | VALUES,
        "function": st.fixed_dictionaries({"name": WORDS | VALUES, "arguments": WORDS | VALUES}),
    }
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"]), "content": WORDS | VALUES},
    optional={
        "tool_calls": st.lists(CALLS, max_size=3) | VALUES,
        "reasoning": VALUES,
        "provider_state": VALUES,
        "tool_call_id": WORDS,
    },
)
LINES = st.fixed_dictionaries(
    {"kind": st.sampled_from(KINDS) | VALUES},
    optional={
        "message": MESSAGES | VALUES,
        "call": CALLS | VALUES,
        "call_id": WORDS | VALUES,
        "content": WORDS | VALUES,
        "kept": st.lists(MESSAGES, max_size=3) | VALUES,
        "digest": st.dictionaries(st.sampled_from(["requests", "done", "runs"]), VALUES) | VALUES,
        **dict.fromkeys(
            ("state", "summary", "model", "base_url", "text", "stop", "error", "seconds"), VALUES
        ),
        **dict.fromkeys(("id", "time", "name", "ok", "by", "seconds"), VALUES),
    },
)


@settings(max_examples=100, deadline=None)
@given(st.lists(LINES | st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4), max_size=8))
def test_any_lines_give_a_conversation_that_can_be_gone_on_with(rows: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "sessions").mkdir()
        path = home / "sessions" / "s.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        [info] = list_sessions(home)
        "\n".join(
            [info.title, info.model, info.started, *as_text(read_events(path)), as_markdown(path)]
        ).encode()
        json.dumps(as_row(path), allow_nan=False, ensure_ascii=False).encode()
        session = SessionFile(path)
        history = session.history
        session.record("message", message=user("and now?"))
        messages = history.messages()
        check_well_formed(messages)
        assert messages[-1] == user("and now?")
        json.dumps([messages, history.state], allow_nan=False, ensure_ascii=False).encode()
        endpoint = Endpoint("x", "y", None, reasoning_field="reasoning")
        for sent in ([wire_message(m, endpoint) for m in messages], turns_of(messages, "x/y", False)):
            json.dumps(sent, allow_nan=False, ensure_ascii=False).encode()
        compose("", digest.add(history.digest, messages, {"x": "spend"}), request_tokens(messages))
        session.close()
        again = SessionFile(path)
        again.close()
        assert again.history.messages() == messages
        assert again.history.state == history.state


def test_a_sound_event_stays_as_it_is() -> None:
    said = assistant("so be it", [tool_call("c", "look", "{not json")])
    said["reasoning"], said["provider_state"] = (
        "hm",
        {"anthropic": {"content": [{"type": "text", "text": "x"}]}},
    )
    for event in (
        {"kind": "session", "id": "s", "model": "a/b", "time": "2026"},
        {"kind": "message", "message": said},
        {"kind": "message", "message": user("go"), "model": "a/b", "base_url": None, "by": "rl-cli"},
        {"kind": "result", "call_id": "c", "name": "look", "ok": True, "seconds": 0.1, "content": "{}"},
        {"kind": "state", "state": {"seed": 5, "run_id": None, "base_url": "http://x", "anything": [1, 2.5]}},
        {"kind": "a kind of the future", "what": 5},
    ):
        assert sound_event(event) == event


SPOILED = (
    {"kind": "message", "message": {"role": "assistant", "content": "no calls", "tool_calls": None}},
    {"kind": "message", "message": {"role": "assistant", "content": "its state", "provider_state": [5]}},
    {"kind": "message", "message": {"role": "assistant", "content": "its thoughts", "reasoning": 5}},
    {
        "kind": "message",
        "message": {"role": "assistant", "content": "its call", "tool_calls": [tool_call("", "f", "5")]},
    },
    {"kind": "result", "call_id": "", "content": "[]", "seconds": "long"},
    {
        "kind": "message",
        "message": {"role": "user", "content": "my call", "tool_calls": [tool_call("c", "f", "{}")]},
    },
    {"kind": "state", "state": {"draft": 5, "run_id": ["x"], "seed": "many"}},
    {"kind": "call"},
    {"kind": "call", "call": {"function": 5}},
    {"kind": "notice", "text": 5},
    {"kind": "end", "stop": [], "error": {}},
)


def test_a_session_with_spoiled_lines_is_shown_exported_and_gone_on_with(home: Path) -> None:
    session = new_session(home, "builtin/operator")
    session.record("message", message=user("hello"))
    session.close()
    with session.path.open("a") as file:
        file.write("".join(json.dumps(row) + "\n" for row in SPOILED))
    shown = rl_cli("sessions", "show", session.id)
    exported = rl_cli("sessions", "export", session.id, "--format", "md")
    rows = rl_cli("sessions", "export", session.id, "--format", "jsonl")
    for done in (
        shown,
        exported,
        rows,
        rl_cli("sessions", "list"),
        rl_cli("sessions", "show", "latest", "--json"),
    ):
        assert done.code == 0, done.err
    for text in ("hello", "no calls", "its state", "its thoughts", "its call", "my call"):
        assert text in shown.out
        assert text in exported.out
        assert text in rows.out
    answered = rl_cli("ask", "what can I train?", "--session", session.id)
    assert answered.code == 0, answered.err
    assert "bug" not in answered.err
