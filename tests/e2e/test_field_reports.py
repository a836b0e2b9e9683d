"""Field reports about endpoints, seen from outside: the command, a real server, the files that are left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.cli import Outcome, rl_cli
from tests.wire import refusals
from tests.wire.server import Answer, Call, Raw, Refusal, Reply, Request, WireServer


def ask(server: WireServer, *words: str, session: str | None = None) -> Outcome:
    going_on = ("--session", session) if session else ()
    return rl_cli("ask", *words, "--json", "--model", "openai/m", "--base-url", server.openai_url, *going_on)


def results_of(request: Request) -> list[str]:
    """The ids of the calls that the newest message of the model was answered for."""
    messages = request.body["messages"]
    last = max(i for i, message in enumerate(messages) if message["role"] == "assistant")
    return [message["tool_call_id"] for message in messages[last + 1 :] if message["role"] == "tool"]


@pytest.mark.parametrize("arguments", ["", "null", " ", "{}"])
def test_agt_07_each_way_to_say_no_arguments_runs_the_tool(arguments: str):
    with WireServer([Reply(calls=[Call("rl_list_environments", arguments)]), Reply("ok")]) as server:
        told = ask(server, "which environments are there?")
    assert told.code == 0, told.err
    assert [row["ok"] for row in told.rows() if row["kind"] == "result"] == [True]


def test_agt_08_half_a_call_for_ever_ends_the_command_soon_and_says_why():
    half = Reply("I look", calls=[Call("rl_list_runs", '{"limit": ')], finish="length")
    with WireServer(lambda request: half) as server:
        told = ask(server, "list my runs")
    assert told.code == 1
    assert 1 <= len(server.requests) <= 4
    assert not [row for row in told.rows() if row["kind"] == "result" and row["ok"]]
    end = told.rows()[-1]
    assert end["stop"] in ("token_limit", "stuck")
    assert "cut" in end["error"]
    assert "max_output_tokens" in end["error"]


def chunk(*calls: dict, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": {"tool_calls": list(calls)} if calls else {}, "finish_reason": finish}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n"


def part(index: int, arguments: str = "", id: str | None = None, name: str | None = None) -> dict:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"index": index, "function": function} | ({"id": id, "type": "function"} if id else {})


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(
            [
                [part(0, '{"limit": 1}', "c1", "rl_list_runs")],
                [part(0, '{"limit": 2}', "c2", "rl_list_runs")],
            ],
            id="same index, different ids",
        ),
        pytest.param(
            [
                [part(0, "", "c1", "rl_list_runs"), part(1, "", "c2", "rl_list_runs")],
                [part(1, '{"limit"')],
                [part(0, '{"limit": 1')],
                [part(1, ": 2}"), part(0, "}")],
            ],
            id="interleaved, ids only in the first chunk",
        ),
        pytest.param(
            [
                [part(0, "", "c1", "rl_list")],
                [part(0, '{"limit": 1}', None, "_runs")],
                [part(1, '{"limit": 2}', "c2", "rl_list_runs")],
            ],
            id="a name in two pieces",
        ),
    ],
)
def test_agt_10_parallel_calls_are_all_run_however_they_are_streamed(pieces: list[list[dict]]):
    stream = "".join(chunk(*piece) for piece in pieces) + chunk(finish="tool_calls") + "data: [DONE]\n\n"
    with WireServer([Raw(stream.encode()), Reply("both")]) as server:
        told = ask(server, "list them twice")
    assert told.code == 0, told.err
    calls = [row["call"] for row in told.rows() if row["kind"] == "call"]
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [{"limit": 1}, {"limit": 2}]
    assert results_of(server.requests[1]) == ["c1", "c2"]


@pytest.mark.parametrize(
    ("count", "alike"), [(1, False), (3, False), (8, False), (16, False), (3, True), (16, True)]
)
def test_agt_12_every_call_of_a_turn_is_answered_however_many(count: int, alike: bool):
    asked = [Call("rl_list_runs", {"limit": 1 if alike else n + 1}) for n in range(count)]
    with WireServer([Reply(calls=asked), Reply("all of them")]) as server:
        told = ask(server, "list")
    assert told.code == 0, told.err
    assert server.violations == []
    ids = results_of(server.requests[1])
    assert len(ids) == len(set(ids)) == count
    assert [row["ok"] for row in told.rows() if row["kind"] == "result"] == [True] * count


def test_agt_21_a_wait_of_two_seconds_is_kept_to_the_second_request():
    with WireServer([refusals.openai_rate_limit(retry_after="2"), Reply("here")]) as server:
        told = ask(server, "hello there")
    assert told.code == 0, told.err
    first, second = (request.at for request in server.requests)
    assert second - first >= 2
    assert [row["wait_seconds"] for row in told.rows() if row["kind"] == "retry"] == [2]


@pytest.mark.parametrize(
    ("refusal", "told_of"),
    [(refusals.openai_rate_limit(retry_after="3600"), "1 h"), (refusals.openai_no_quota(), "credit")],
)
def test_agt_21_what_waiting_does_not_mend_stops_at_once_and_can_be_gone_on_with(
    refusal: Refusal, told_of: str
):
    with WireServer([Reply(calls=[Call("rl_list_runs")]), refusal, Reply("now it works")]) as server:
        told = ask(server, "list my runs")
        assert told.code == 1
        assert told_of in told.err
        assert len(server.requests) == 2
        again = ask(server, "go on", session=told.rows()[-1]["session"])
    assert again.code == 0, again.err
    sent = server.requests[2].body["messages"]
    assert sum(message["role"] == "tool" for message in sent) == 1, "the finished round was lost"


def test_agt_22_a_rate_limit_after_four_rounds_loses_none_and_shows_no_account(home: Path):
    account, key = "org-ABCDEF123456", "sk-test-AAAABBBBCCCCDDDD"
    words = f"Rate limit reached for organization {account} with key {key} on tokens per min."

    def busy(request: Request) -> Answer:
        rounds = sum(message["role"] == "tool" for message in request.body["messages"])
        if rounds == 4 and request.number == 4:
            return Refusal(429, words, "tokens", "rate_limit_exceeded", headers={"retry-after": "1"})
        return Reply(calls=[Call("rl_list_runs", {"limit": rounds + 1})]) if rounds < 4 else Reply("done")

    with WireServer(busy) as server:
        told = ask(server, "look four times")
        plain = rl_cli(
            *("ask", "and", "again", "--session", "latest"),
            *("--model", "openai/m", "--base-url", server.openai_url),
        )
    assert told.code == 0, told.err
    assert [row["kind"] for row in told.rows()].count("retry") == 1
    assert [row["kind"] for row in told.rows()].count("result") == 4, "a finished round was made again"
    written = "".join(p.read_bytes().decode("latin-1") for p in home.rglob("*") if p.is_file())
    for secret in (account, key):
        assert secret not in told.out + told.err + plain.out + plain.err + written
