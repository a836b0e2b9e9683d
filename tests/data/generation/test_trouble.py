"""Providers that fail: now and then, for one item, or altogether."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rl_cli.cli.batch_display import BatchDisplay
from rl_cli.core.errors import BadUsage
from rl_cli.data.batch.folder import batch_folder
from rl_cli.data.batch.summary import summary
from rl_cli.data.batch_runner import run_batch
from rl_cli.data.generation.progress import Progress
from rl_cli.data.generation.stopping import Stopping
from rl_cli.data.jobs.status import batch_status
from tests.data.generation.batches import (
    FAILS,
    agent,
    config,
    entries,
    make,
    prompts_done,
    question,
    write_prompts,
)
from tests.wire.server import Answer, Fault, Refusal, Reply, Request, WireServer

BUSY = Refusal(429, "slow down", headers={"retry-after-ms": "20", "retry-after": "0.02"})
KEY = "sk-test-AAAABBBBCCCCDDDD"


def test_a_provider_that_fails_everything_leaves_everything_to_a_healthy_one(tmp_path: Path) -> None:
    prompts = [f"p{n}" for n in range(20)]
    input_ = write_prompts(tmp_path / "in.jsonl", prompts)
    with WireServer(lambda request: FAILS) as server:
        ended = make(input_, server, concurrency=4)
        assert 10 <= len(server.requests) <= 14
        assert (ended.state, ended.exit_code) == ("failed", 1)
        assert ended.reason
        assert "it broke" in ended.reason
        assert entries() == []
        state = batch_folder("b").state()
        assert (state["state"], state["done"], state["failed"]) == ("failed", 0, 0)
        assert "it broke" in state["reason"]
        assert "it broke" in state["trouble"]
        server.set(agent)
        assert make(input_, server, concurrency=4).exit_code == 0
    assert prompts_done() == Counter(prompts)
    assert batch_folder("b").state()["trouble"] is None


def test_why_nothing_comes_is_told_while_requests_are_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopping, shown = Stopping(), BatchDisplay(None)

    def show(progress: Progress) -> None:
        shown.show(progress)
        if progress.trouble:
            stopping.press()
            stopping.now.set()

    with WireServer(lambda request: Refusal(503, f"overloaded {KEY} " + "x" * 900)) as server:
        given = config(write_prompts(tmp_path / "in.jsonl", ["a", "b"]), server)
        assert run_batch(given, show, stopping=stopping).state == "stopped"
    told = capsys.readouterr().err
    assert "0 of 2 ended" in told
    assert "latest error: " in told
    assert "overloaded" in told
    assert KEY not in told
    status = batch_status(batch_folder("b"))
    assert "overloaded" in status["trouble"]
    assert len(status["trouble"]) <= 300


@pytest.mark.parametrize("count", [1, 3])
def test_so_does_one_that_fails_a_small_batch(tmp_path: Path, count: int) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", [f"p{n}" for n in range(count)])
    with WireServer(lambda request: FAILS) as server:
        ended = make(input_, server)
        assert (ended.state, ended.exit_code, entries()) == ("failed", 1, [])
        server.set(agent)
        assert make(input_, server).exit_code == 0


def test_a_provider_that_dies_in_the_middle_loses_nothing(tmp_path: Path) -> None:
    prompts = [f"p{n}" for n in range(30)]
    input_ = write_prompts(tmp_path / "in.jsonl", prompts)
    with WireServer(lambda request: agent(request) if request.number < 25 else FAILS) as server:
        ended = make(input_, server, concurrency=4)
        done = prompts_done()
        assert (ended.exit_code, ended.progress.failed.total()) == (1, 0)
        assert 0 < done.total() < 30
        left = [entry for entry in entries() if entry["state"] != "done"]
        assert {entry["state"] for entry in left} == {"open"}, "what was paid for is kept, and nothing failed"
        assert all(entry["row"] and entry["row"]["usage"]["requests"] for entry in left)
        paid = sum(entry["row"]["usage"]["requests"] for entry in entries() if entry["row"])
        assert summary(batch_folder("b"))["requests"] == paid == 25
        server.set(agent)
        before = len(server.requests)
        assert make(input_, server, concurrency=4).exit_code == 0
        assert not set(done) & {question(request) for request in server.requests[before:]}
    assert prompts_done() == Counter(prompts)


def test_bat_14_too_many_requests_are_made_again_and_other_settings_are_refused(tmp_path: Path) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", ["a"])
    with WireServer([BUSY, BUSY, Reply("fine", reasoning="so")]) as server:
        assert make(input_, server).exit_code == 0
        assert len(server.requests) == 3
        with pytest.raises(BadUsage, match="model was 'openai/m' and is 'openai/other'"):
            make(input_, server, model="openai/other")
        with pytest.raises(BadUsage, match=r"temperature was None and is 0\.5"):
            make(input_, server, temperature=0.5)
        assert make(input_, server, concurrency=2).exit_code == 0
        assert len(server.requests) == 3


def test_fewer_requests_go_out_while_the_provider_throttles(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        return BUSY if 8 <= request.number < 12 else Reply("fine", delay=0.01)

    with WireServer(answer) as server:
        ended = make(
            write_prompts(tmp_path / "in.jsonl", [f"p{n}" for n in range(40)]), server, concurrency=16
        )
    assert (ended.exit_code, ended.progress.done) == (0, 40)
    assert ended.progress.allowed < 16


def test_bat_16_each_item_ends_once_and_each_failure_has_its_reason(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        asked = question(request)
        if asked == "filtered":
            return Reply("I", finish="content_filter")
        if asked == "refused":
            return Refusal(400, "no such thing", param="messages")
        if asked == "broken":
            return FAILS
        return agent(request)

    prompts = ["a", "filtered", "b", "refused", "c", "broken", "d"]
    with WireServer(answer, strict=False) as server:
        ended = make(write_prompts(tmp_path / "in.jsonl", prompts), server, concurrency=2)
    found = entries()
    assert (ended.state, ended.exit_code) == ("finished", 1)
    assert len({entry["key"] for entry in found}) == len(found) == 7
    failed = {entry["reason"]: entry for entry in found if entry["state"] == "failed"}
    assert Counter(entry["reason"] for entry in found) == {None: 4, "content_filter": 1, "provider": 2}
    assert all(entry["error"] and entry["attempts"] >= 1 for entry in failed.values())
    assert failed["content_filter"]["row"], "what was paid for is kept"
    broken = next(entry for entry in found if "it broke" in entry.get("error", ""))
    assert (broken["attempts"], broken["error"].partition(":")[0]) == (3, "PolicyError")


def test_a_reply_that_breaks_off_is_asked_again_and_what_was_paid_is_counted(tmp_path: Path) -> None:
    cut = Reply("a long answer that ends in the middle of", fault=Fault("cut", 3))
    with WireServer([cut, Reply("the whole", reasoning="so")]) as server:
        ended = make(write_prompts(tmp_path / "in.jsonl", ["a"]), server)
    (entry,) = entries()
    assert entry["row"]
    assert (ended.exit_code, entry["row"]["usage"]["requests"]) == (0, 2)
    assert entry["row"]["messages"][-1]["content"] == "the whole"


def test_bat_17_a_server_that_is_gone_for_a_while_costs_no_row(tmp_path: Path) -> None:
    prompts = [f"p{n}" for n in range(12)]
    input_ = write_prompts(tmp_path / "in.jsonl", prompts)
    with WireServer(agent) as server:
        port = int(server.root.rpartition(":")[2])

        def answer(request: Request) -> Answer:
            return agent(request) if request.number < 10 else Reply(fault=Fault("reset"))

        server.set(answer)
        first = make(input_, server, concurrency=4, give_up_after=2)
        assert first.exit_code == 1
        assert 0 < prompts_done().total() < 12
    with WireServer(agent, port=port) as server:
        assert make(input_, server, concurrency=4, give_up_after=2).exit_code == 0
    assert prompts_done() == Counter(prompts)
