"""Older turns become a summary that forgets nothing which was done; results stay within their share."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environments.agent_loop import StopReason
from environments.policies.base import ContextOverflow
from environments.policies.endpoints.token_estimate import request_tokens, text_tokens
from rl_cli.agent.compaction import cut
from rl_cli.agent.window import result_limit, room, shortened
from rl_cli.core.messages import Message, assistant, tool_call, tool_result, user
from tests.agent.talk import STARTED, Playing, calls, check_well_formed, events, talk

WINDOW = 8_000
LONG = "word " * 1_400
"""2,000 tokens."""


@pytest.fixture(autouse=True)
def _nothing_started() -> None:
    STARTED.clear()


def texts(messages: list[Message]) -> str:
    return "\n".join(m["content"] or "" for m in messages)


START_A = calls(("start", {"name": "A"}))


def is_summary(request: list[Message]) -> bool:
    return (request[0]["content"] or "").startswith("You summarise")


def literal(summary: Any) -> Callable[[list[Message]], Any]:
    """A model that does what the conversation shows: it starts A unless that is there as done.

    Args:
        summary: What it answers when it is asked to summarise.
    """

    def answer(messages: list[Message]) -> Any:
        if is_summary(messages):
            return summary
        shown = texts(messages)
        if "run-A" not in shown:
            return START_A
        return LONG if (messages[-1]["content"] or "").isdigit() else "it runs"

    return answer


def test_trj_07_what_was_done_before_a_summary_is_not_done_again(home: Path) -> None:
    policy = Playing(*[literal("summary: nothing to say")] * 20)
    told: list[str] = []
    asked = ("start run A", "1", "2", "3", "what is the status?")
    results = talk(home, policy, *asked, window=WINDOW, on_notice=told.append)
    assert [r.stop for r in results] == [StopReason.FINISHED] * 5
    assert results[-1].text == "it runs"
    assert STARTED == ["A"]
    assert told[0] == "older messages are being summarised"
    assert "older messages were summarised in the model's words" in told[1]
    assert len(told) == 2
    summarising = next(i for i, request in enumerate(policy.requests) if is_summary(request))
    assert policy.offered[summarising] == 0  # no tools
    summary = policy.requests[-1][1]["content"] or ""
    assert '"start run A" -> "it runs"' in summary
    assert "summary: nothing to say" in summary
    assert "run-A: running" in summary
    # The next process knows it from the file.
    talk(home, policy := Playing(literal("")), "and now?", window=WINDOW)
    assert STARTED == ["A"]
    assert (policy.requests[0][1]["content"] or "") == summary


@pytest.mark.parametrize("answer", ["", ContextOverflow("too long"), calls(("start", {"name": "B"}))])
def test_where_the_model_gives_no_summary_the_records_do(home: Path, answer: Any) -> None:
    policy = Playing(*[literal(answer)] * 20)
    results = talk(home, policy, "start run A", "1", "2", "3", "status", window=WINDOW)
    assert results[-1].text == "it runs"
    assert 'start({"name": "A"}): done, run_id run-A, state running' in texts(policy.requests[-1])
    assert STARTED == ["A"]


def test_summaries_of_summaries_lose_nothing_that_was_done(home: Path) -> None:
    def answer(messages: list[Message]) -> Any:
        if is_summary(messages):
            return "I forgot everything."
        name = messages[-1]["content"] or ""
        return calls(("start", {"name": name})) if messages[-1]["role"] == "user" else LONG

    policy = Playing(*[answer] * 60)
    results = talk(home, policy, *"ABCDEFGHIJKLMNOP", window=WINDOW)
    assert {r.stop for r in results} == {StopReason.FINISHED}
    assert sum(e["kind"] == "compaction" for e in events(home)) >= 3
    final = texts(policy.requests[-1])
    for name in "ABCDEFGHIJKLMNOP":
        assert f"run-{name}" in final
    assert list("ABCDEFGHIJKLMNOP") == STARTED


def test_agt_13_an_overflow_answer_shortens_once_and_changes_no_limit(home: Path) -> None:
    overflow = ContextOverflow("input exceeds the context window")
    policy = Playing("one", "two", overflow, "a summary", "three")
    results = talk(home, policy, "a" * 4000, "b" * 4000, "c", window=1_000_000)
    assert [r.text for r in results] == ["one", "two", "three"]
    assert is_summary(policy.requests[3])
    assert sum(e["kind"] == "compaction" for e in events(home)) == 1
    # As before: far below the window nothing is shortened.
    talk(home, policy := Playing("four"), "d" * 40_000, window=1_000_000)
    assert len(policy.requests) == 1


def test_a_second_overflow_ends_the_turn_and_not_in_a_circle(home: Path) -> None:
    overflow = ContextOverflow("prompt is too long")
    policy = Playing("one", "two", overflow, "a summary", overflow, "never said")
    *_, result = talk(home, policy, "a" * 4000, "b" * 4000, "c", window=100_000)
    assert result.stop is StopReason.OVERFLOW
    assert (
        result.reason
        == "even shortened, the conversation does not fit the model's window: prompt is too long"
    )
    assert policy.answers == ["never said"]
    policy = Playing(overflow, "never said")
    [result] = talk(home, policy, "d" * 100, session=None, window=100_000)
    assert result.stop is StopReason.OVERFLOW


def test_a_request_that_alone_is_too_long_is_said_to_be(home: Path) -> None:
    [result] = talk(home, Playing(ContextOverflow("prompt is too long")), "x" * 99, window=100_000)
    assert result.reason == "one request alone does not fit the model's window: prompt is too long"


def test_a_long_turn_is_divided_and_keeps_its_request(home: Path) -> None:
    working = [calls(("print_as", {"count": 3000 + n})) for n in range(30)]

    def answer(messages: list[Message]) -> Any:
        if is_summary(messages):
            return "printing goes on"
        return working.pop(0) if working else "done"

    policy = Playing(*[answer] * 60)
    [result] = talk(home, policy, "print thirty times", window=WINDOW)
    assert (result.stop, result.text, len(result.calls)) == (StopReason.FINISHED, "done", 30)
    for request in policy.requests:
        check_well_formed(request[1:])
        assert request_tokens(request) < WINDOW
        if request[0]["content"] == policy.requests[0][0]["content"]:
            assert user("print thirty times") in request


def test_many_large_results_at_once_are_each_given_their_share(home: Path) -> None:
    everything = calls(*[("print_as", {"count": 90_000 + n}) for n in range(12)])
    policy = Playing(everything, "a summary that is not asked for", "fine")
    [result] = talk(home, policy, "print", window=WINDOW)
    assert result.stop is StopReason.FINISHED
    assert request_tokens(policy.requests[-1]) < 0.85 * room(WINDOW)
    check_well_formed(policy.requests[-1][1:])


@pytest.mark.parametrize("size", [500, 2_000, 20_000, 2_000_000])
def test_agt_15_and_17_a_result_is_verbatim_or_has_ends_size_and_a_file(home: Path, size: int) -> None:
    policy = Playing(calls(("print_as", {"count": size})), "seen")
    talk(home, policy, "print it", window=32_000)
    content = policy.requests[1][-1]["content"] or ""
    limit = result_limit(32_000)
    assert limit == 14_000
    assert len(content) <= limit
    result = json.loads(content)
    if size < limit:
        assert result == {"ok": True, "output": "A" * size}
        return
    assert "characters left out" in result["output"]
    assert result["output"].startswith("AAA")
    assert result["output"].endswith("AAA")
    assert result["truncated"]["characters"] > size
    whole = json.loads(Path(result["truncated"]["file"]).read_text("utf-8"))
    assert whole["output"] == "A" * size


def test_agt_16_a_session_that_reads_itself_grows_by_the_cap_at_most(home: Path) -> None:
    talk(home, Playing("hello"), "begin", window=32_000)
    path = next((home / "sessions").glob("*.jsonl"))
    sizes = [path.stat().st_size]
    for n in range(4):
        read = calls(("read_text", {"path": str(path)}), ("print_as", {"count": n}))
        talk(home, Playing(read, "read"), "read your own file", window=32_000)
        sizes.append(path.stat().st_size)
    steps = [after - before for before, after in pairwise(sizes)]
    assert max(steps) <= 3 * result_limit(32_000)  # its quotes and backslashes are escaped once more


def test_the_limit_of_a_result_follows_the_window() -> None:
    assert [result_limit(w) for w in (None, 1_000_000, 32_768, 8_192, 2_048)] == [
        40_000,
        40_000,
        14_336,
        3_584,
        2_000,
    ]


def test_a_shortened_result_still_says_where_the_whole_is() -> None:
    note = {"characters": 9, "file": "/x.json"}
    content = json.dumps({"ok": True, "output": "A" * 5000, "truncated": note})
    result = json.loads(shortened(content, 1000))
    assert result["truncated"] == note
    assert len(shortened(content, 1000)) <= 1100
    assert len(shortened("no json" * 1000, 1000)) < 1100


def test_estimates_count_characters_that_are_words() -> None:
    assert text_tokens("a" * 350) == 100
    assert text_tokens("训练模型") == 4
    assert text_tokens("") == 0


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("uac"), st.integers(0, 300), st.integers(1, 3)), min_size=1, max_size=12
    ),
    st.integers(0, 600),
    st.booleans(),
)
def test_a_cut_keeps_calls_and_results_together(
    shapes: list[tuple[str, int, int]], keep: int, whole_turns: bool
) -> None:
    messages: list[Message] = [user("request 0")]
    for n, (kind, size, count) in enumerate(shapes):
        if kind == "u":
            messages.append(user(f"request {n} {'x' * size}"))
        elif kind == "a":
            messages.append(assistant("y" * size))
        else:
            made = [tool_call(f"{n}_{i}", "look", "{}") for i in range(count)]
            messages.append(assistant(None, made))
            messages += [tool_result(c, json.dumps({"ok": True, "n": n, "text": "z" * size})) for c in made]
    parts = cut(messages, keep, whole_turns)
    if parts is None:
        return
    check_well_formed(parts.older)
    check_well_formed(parts.kept)
    requests = [m for m in messages if m["role"] == "user"]
    assert requests[-1] in parts.kept
    assert parts.kept[0]["role"] == "user"
    dropped = [m for m in messages if m not in parts.kept and m not in parts.older and m["role"] != "tool"]
    assert dropped == []
    if whole_turns:
        assert parts.older + parts.kept == messages or request_tokens(messages) > keep
