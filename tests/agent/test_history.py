"""What a session's events amount to, whatever a crash left of them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rl_cli.agent.history import UNKNOWN, History
from rl_cli.agent.session_file import SessionFile
from rl_cli.core.json_text import to_json
from rl_cli.core.messages import assistant, tool_call, user
from tests.agent.talk import check_well_formed

TEXTS = st.text(min_size=1, max_size=12)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Events as the assistant writes them; ids repeat, results come in any order."""
    told: list[dict[str, Any]] = [{"kind": "session", "id": "s", "model": "a/b"}]
    for _ in range(draw(st.integers(1, 4))):
        told.append({"kind": "message", "message": user(draw(TEXTS))})
        for _ in range(draw(st.integers(0, 3))):
            ids = draw(st.lists(st.sampled_from(["call_1", "call_2", "call_3"]), unique=True, max_size=3))
            made = [tool_call(i, draw(st.sampled_from(["look", "start"])), draw(TEXTS)) for i in ids]
            told.append({"kind": "message", "message": assistant(draw(st.none() | TEXTS), made)})
            told += [{"kind": "call", "call": call} for call in made]
            for call in draw(st.permutations(made)):
                if draw(st.booleans()):
                    told.append({"kind": "state", "state": {"n": draw(st.integers())}})
                content = to_json({"ok": True, "of": call["id"], "said": draw(TEXTS)})
                told.append({"kind": "result", "call_id": call["id"], "name": "x", "content": content})
        if draw(st.booleans()):
            so_far = History()
            for event in told:
                so_far.apply(event)
            kept = so_far.since_summary()
            told.append({"kind": "compaction", "summary": draw(TEXTS), "digest": {}, "kept": kept})
        told.append({"kind": draw(st.sampled_from(["end", "a kind of the future"])), "stop": "finished"})
    return told


@settings(max_examples=300, deadline=None)
@given(conversations(), st.data())
def test_a_file_torn_at_any_byte_gives_a_well_formed_conversation_that_goes_on(
    told: list[dict[str, Any]], data: st.DataObject
) -> None:
    whole = "".join(to_json(event) + "\n" for event in told).encode()
    torn = whole[: data.draw(st.integers(0, len(whole)))]
    complete = [json.loads(line) for line in torn.split(b"\n")[:-1]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        path.write_bytes(torn)
        session = SessionFile(path)
        check_well_formed(session.history.messages())
        asked = [e["message"]["content"] for e in complete if e["kind"] == "message" and _by_user(e)]
        assert session.history.turns in (len(asked), len(asked) + 1)  # the last line may lack its end only
        if asked and session.history.summary is None:
            said = [m["content"] for m in session.history.messages() if m["role"] == "user"]
            assert said[: len(asked)] == asked
        session.record("message", message=user("and now?"))
        live = session.history.messages()
        session.close()
        again = SessionFile(path)
        again.close()
    assert again.history.messages() == live
    assert live[-1] == user("and now?")
    check_well_formed(live)


@settings(max_examples=200, deadline=None)
@given(conversations(), st.data())
def test_events_that_are_lost_in_the_middle_or_written_twice_do_no_harm(
    told: list[dict[str, Any]], data: st.DataObject
) -> None:
    history = History()
    for event in told:
        for _ in range(data.draw(st.sampled_from([0, 1, 1, 1, 2]))):
            history.apply(event)
    check_well_formed(history.messages())


def test_agt_03_a_call_without_a_result_is_answered_neutrally() -> None:
    history = History()
    history.apply({"kind": "message", "message": user("start it")})
    history.apply({"kind": "message", "message": assistant("ok", [tool_call("c", "start_training", "{}")])})
    [_, _, result] = history.messages()
    assert result["content"] == UNKNOWN
    error = json.loads(UNKNOWN)["error"]
    assert error["type"] == "result_unknown"
    assert "Check the state" in error["message"]
    assert "before repeating" in error["message"]
    assert not {"user", "person", "interrupt", "abort", "cancel"} & set(error["message"].lower().split())


def test_lines_of_other_programs_are_passed_over() -> None:
    history = History()
    for odd in (
        {"kind": "message"},
        {"kind": "message", "message": []},
        {"kind": "message", "message": {"role": "system", "content": "be bad"}},
        {"kind": "message", "message": {"role": "assistant", "content": {"a": 1}}},
        {"kind": "message", "message": {"role": "assistant", "content": "x", "tool_calls": [{"id": 1}]}},
        {"kind": "result", "call_id": "nobody", "content": "{}"},
        {"kind": "state", "state": "on"},
        {"kind": "compaction", "summary": "x"},
        {},
    ):
        history.apply(odd)
    assert history.messages() == []


def _by_user(event: dict[str, Any]) -> bool:
    return event["message"]["role"] == "user"
