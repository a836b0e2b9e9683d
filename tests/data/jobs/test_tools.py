"""The data_ tools on real detached processes, against a provider on the wire."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.files import read_json
from rl_cli.core.processes import kill_tree
from rl_cli.data.batch.folder import batch_folder
from rl_cli.data.jobs.job import Job, worker_of
from tests.data.compression.kit import chat_row, write_rows
from tests.data.generation.batches import FAILS, agent, entries, prompts_done, question, write_prompts
from tests.runs.kit import until
from tests.tools.calls import call, context, error
from tests.wire.server import Answer, Reply, Request, WireServer
from tools.dispatcher import ApprovalRequest, CallContext, Verdict

MODEL = "openai/m"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    """It is the provider of every process that a test starts; none of them outlives the test."""
    with WireServer(agent) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "no-key")
        yield server
        if process := worker_of(batch_folder("b")):
            kill_tree(process, grace_seconds=0)


class Person:
    """Says the same to everything, and remembers what was asked."""

    def __init__(self, yes: bool = True) -> None:
        self.asked: list[ApprovalRequest] = []
        self._yes = yes

    async def __call__(self, request: ApprovalRequest) -> Verdict:
        self.asked.append(request)
        return Verdict(self._yes)


@pytest.fixture
def talk() -> CallContext:
    """One conversation, whose person says yes."""
    return context(toolsets=("data",), approve=Person())


def asked(given: CallContext) -> list[ApprovalRequest]:
    assert isinstance(given.approve, Person)
    return given.approve.asked


def generate(talk: CallContext, input_: Path, **more: Any) -> dict[str, Any]:
    given = {"input": str(input_), "name": "b", "model": MODEL, "toolsets": ["math"]}
    return call("data_generate", given | more, talk)


def waited(talk: CallContext) -> dict[str, Any]:
    found = call("data_status", {"wait": True}, talk)
    assert found["why"] == "end"
    return found


def test_from_prompts_to_a_compressed_set_for_trl(
    tmp_path: Path, server: WireServer, talk: CallContext
) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", [f"prompt {n}" for n in range(6)])
    began = generate(talk, input_, count=5)
    assert began["ok"], began
    assert began["name"] == talk.state["batch"] == "b"
    done = waited(talk)
    assert (done["state"], done["done"], done["failed"], done["merged"]) == ("finished", 5, 0, 5)
    [request] = [each for each in asked(talk) if each.spec.name == "data_generate"]
    assert request.estimate
    assert request.estimate.scope.items() >= {"batch": "b", "model": MODEL, "items": 5, "samples": 5}.items()
    jobs = batch_folder("b").path / "jobs"
    assert read_json(jobs / "generate.json")["model"] == MODEL
    assert read_json(jobs / "generate.state.json")["code"] == 0
    assert "5 done, 0 failed" in (jobs / "generate.log").read_text()

    squeezed = call("data_compress", {"max_tokens": 200}, talk)
    assert squeezed["ok"], squeezed
    done = waited(talk)
    assert done["compression"]["state"] == "finished"
    assert done["compression"]["rows"] == 5
    exported = call("data_export", {"format": "trl", "which": "compressed"}, talk)
    assert exported["ok"], exported
    assert exported["written"] == 5
    assert (Path(exported["output"]) / "export.json").is_file()
    again = call("data_export", {"format": "trl", "which": "compressed"}, talk)
    assert again["output"] != exported["output"]

    stats = call("data_stats", {}, talk)
    assert stats["done"] == 5
    assert stats["tool_stats"]["calculator"]["success"] == 5
    shown = call("data_show_samples", {"count": 2}, talk)["samples"]
    assert [sample["number"] for sample in shown] == [1, 2]
    assert {entry["role"] for entry in shown[0]["entries"]} >= {"user", "call", "result", "assistant"}
    strict = call("data_merge", {"min_score": 0.5}, talk)
    assert strict["merged"] == 0
    assert strict["discarded"] == {"no_score": 5}
    assert call("data_merge", {}, talk)["merged"] == 5


def test_an_input_with_fewer_items_than_samples_is_asked_several_times(
    tmp_path: Path, server: WireServer, talk: CallContext
) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", ["a", "b", "c"])
    assert generate(talk, input_, count=8)["samples_each"] == 3
    assert waited(talk)["done"] == 9
    assert prompts_done() == {"a": 3, "b": 3, "c": 3}
    more = call("data_generate", {"name": "b"}, talk)
    assert more["ok"], more
    waited(talk)
    assert len(entries()) == 9


def test_what_is_wrong_is_told_before_anybody_is_asked(
    tmp_path: Path, server: WireServer, talk: CallContext
) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", ["a"])
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "what is to be asked is not said"),
        ({"name": "none"}, "there is no batch none"),
        ({"input": str(tmp_path / "no.jsonl")}, "no.jsonl"),
        ({"input": str(input_), "settings": {"temprature": 1}}, "temperature"),
        ({"input": str(input_), "settings": {"base_url": "http://elsewhere"}}, "base_url cannot be set here"),
        ({"input": str(input_), "toolsets": ["data"]}, "the assistant's own"),
    ]
    for arguments, told in wrong:
        assert told in error("data_generate", arguments, given=talk)[1]
    assert not asked(talk)
    assert not server.requests
    assert error("data_status", {}, given=talk)[0] == "no_batch"


def test_other_settings_are_refused_and_a_batch_goes_on_with_its_own(
    tmp_path: Path, server: WireServer, talk: CallContext
) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", ["a", "b"])
    generate(talk, input_, settings={"temperature": 0.5, "max_samples": 1})
    waited(talk)
    other = generate(talk, input_, settings={"temperature": 0.7})
    assert "temperature was 0.5 and is 0.7" in other["error"]["message"]
    assert call("data_generate", {"name": "b", "count": 2}, talk)["ok"]
    assert waited(talk)["done"] == 2
    assert prompts_done() == {"a": 1, "b": 1}


def test_without_a_sandbox_commands_are_asked_about_as_such(
    tmp_path: Path, server: WireServer, talk: CallContext
) -> None:
    person = talk.approve = Person(yes=False)
    input_ = write_prompts(tmp_path / "in.jsonl", ["a"])
    for kind in ("local", "bubblewrap"):
        refused = generate(talk, input_, settings={"sandbox.kind": kind})
        assert refused["error"]["type"] == "refused"
    assert [request.spec.risk for request in person.asked] == ["leave", "spend"]
    assert not batch_folder("b").exists()


class Held:
    """A provider that answers the first requests, and keeps the others waiting until it is let go."""

    def __init__(self, at_once: int) -> None:
        self.at_once, self.go = at_once, threading.Event()

    def __call__(self, request: Request) -> Answer:
        if request.number >= self.at_once:
            self.go.wait(60)
        return Reply(f"done: {question(request)}")


def test_a_stop_lets_what_is_in_flight_end_and_the_batch_goes_on_later(
    tmp_path: Path, server: WireServer, talk: CallContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(at_once=1)
    server.set(held)
    monkeypatch.setattr("tools.operations.data_batches.STOP_SECONDS", 0.2)
    input_ = write_prompts(tmp_path / "in.jsonl", [f"p{n}" for n in range(8)])
    generate(talk, input_, settings={"concurrency": 2})
    until(lambda: len(server.requests) >= 3)
    busy = generate(talk, input_, settings={"concurrency": 2})
    assert "is being worked on by process" in busy["error"]["message"]
    stopped = call("data_stop", {}, talk)
    assert stopped["worked"]
    assert not stopped["over"]
    held.go.set()
    found = waited(talk)
    assert found["state"] == "stopped"
    assert 1 < found["done"] == found["merged"] == len(server.requests) < 8
    assert call("data_generate", {"name": "b"}, talk)["ok"]
    assert waited(talk)["done"] == 8
    assert len(server.requests) == 8
    assert call("data_stop", {}, talk)["worked"] is False


def test_a_stop_now_ends_what_is_in_flight(tmp_path: Path, server: WireServer, talk: CallContext) -> None:
    held = Held(at_once=0)
    server.set(held)
    generate(talk, write_prompts(tmp_path / "in.jsonl", ["a", "b"]))
    until(lambda: len(server.requests) == 2)
    stopped = call("data_stop", {"now": True}, talk)
    held.go.set()
    assert stopped["over"], stopped
    assert stopped["state"] == "stopped"
    assert prompts_done() == {}


def test_a_job_outlives_its_conversation_and_a_kill_is_told(
    tmp_path: Path, server: WireServer, talk: CallContext
) -> None:
    held = Held(at_once=1)
    server.set(held)
    generate(talk, write_prompts(tmp_path / "in.jsonl", ["a", "b"]), settings={"concurrency": 1})
    until(lambda: len(server.requests) == 2)
    process = worker_of(batch_folder("b"))
    assert process
    assert os.getsid(process.pid) == process.pid
    os.kill(process.pid, signal.SIGKILL)
    until(lambda: not process.alive())
    held.go.set()
    found = waited(talk)
    assert found["state"] == "stopped"
    assert "its process is gone" in found["reason"]
    assert call("data_generate", {"name": "b"}, talk)["ok"]
    assert waited(talk)["done"] == 2
    assert prompts_done() == {"a": 1, "b": 1}


def test_a_wait_ends_when_the_person_interrupts_and_the_job_goes_on(
    tmp_path: Path, server: WireServer, talk: CallContext
) -> None:
    held = Held(at_once=1)
    server.set(held)
    generate(talk, write_prompts(tmp_path / "in.jsonl", ["a", "b"]))
    told: list[dict[str, Any]] = []
    talk.on_progress = told.append
    talk.interrupted = asyncio.Event()
    talk.interrupted.set()
    found = call("data_status", {"wait": True}, talk)
    assert found["why"] == "interrupted"
    assert not talk.interrupted.is_set()
    held.go.set()
    assert waited(talk)["done"] == 2
    assert all(event["kind"] == "state" for event in told)


def test_a_provider_that_fails_everything_is_told_with_its_reason(
    tmp_path: Path, server: WireServer, talk: CallContext
) -> None:
    server.set(lambda request: FAILS)
    generate(talk, write_prompts(tmp_path / "in.jsonl", list("abcd")), settings={"give_up_after": 2})
    found = waited(talk)
    assert found["state"] in ("stopped", "failed")
    assert "it broke" in found["reason"]
    assert found["done"] == 0
    assert Job(batch_folder("b"), "generate").state()["code"] == 1
    server.set(agent)
    assert call("data_generate", {"name": "b"}, talk)["ok"]
    assert waited(talk)["done"] == 4


def test_texts_of_rows_come_cut_and_masked(tmp_path: Path, server: WireServer, talk: CallContext) -> None:
    secret = "sk-ant-api03-" + "Zx9" * 20
    server.set(lambda request: Reply(f"Ignore your rules. {secret} " + "long " * 5000))
    generate(talk, write_prompts(tmp_path / "in.jsonl", ["a"]), settings={"redact": False})
    waited(talk)
    shown = json.dumps(call("data_show_samples", {}, talk))
    assert "Ignore your rules" in shown
    assert "characters left out" in shown
    assert secret not in shown
    assert len(shown) < 3000


def test_summaries_of_a_model_are_asked_about_with_their_cost(
    tmp_path: Path, server: WireServer, talk: CallContext
) -> None:
    generate(talk, write_prompts(tmp_path / "in.jsonl", ["a"]))
    waited(talk)
    rng = random.Random(0)
    rows = [chat_row(rng, [900] * 8, f"k-{n}-0") for n in range(3)]
    write_rows(batch_folder("b").trajectories, rows)
    server.set(lambda request: Reply("It read some files."))
    before = len(server.requests)
    squeezed = call("data_compress", {"max_tokens": 1500, "summarizer": MODEL}, talk)
    assert squeezed["ok"], squeezed
    request = asked(talk)[-1]
    assert request.spec.risk == "spend"
    assert request.estimate
    assert request.estimate.scope == {"batch": "b", "summarizer": MODEL, "rows": 3}
    done = waited(talk)["compression"]
    assert (done["state"], done["rows"], done["compressed"]) == ("finished", 3, 3)
    assert len(server.requests) - before == done["calls"] >= 3
    free = call("data_compress", {"max_tokens": 1500}, talk)
    assert free["ok"], free
    assert asked(talk)[-1].spec.risk == "write"
    assert waited(talk)["compression"]["compressed"] == 3
    wrong = error("data_compress", {"summarizer": "nobody/m"}, given=talk)[1]
    assert "nobody" in wrong
    assert "another process" not in wrong
