"""What a batch's rows hold."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rl_cli.data.generation.plan import plan_of
from tests.data.generation.batches import agent, config, entries, make, prompts_done, rows, write_prompts
from tests.wire.server import Answer, Call, Reply, Request, WireServer


def test_a_row_holds_the_conversation_and_how_it_was_made(tmp_path: Path) -> None:
    input_ = tmp_path / "rows.jsonl"
    input_.write_text(json.dumps({"prompt": "six times seven?", "source": "book"}) + "\n")
    with WireServer(agent) as server:
        ended = make(input_, server, temperature=0.5, seed=3, reasoning_effort="low")
        assert not server.violations
        assert server.requests[0].body["reasoning_effort"] == "low"
    assert (ended.state, ended.exit_code, ended.progress.done) == ("finished", 0, 1)
    (row,) = rows()
    assert [m["role"] for m in row["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert row["messages"][1]["reasoning"] == "I compute"
    assert "provider_state" not in json.dumps(row)
    assert row["tool_stats"] == {"calculator": {"count": 1, "success": 1, "failure": 0}}
    assert row["reasoning"] == {"turns": 2, "with": 2}
    assert (row["completed"], row["marks"], row["model"]) == (True, [], "openai/m")
    assert row["metadata"] == {"source": "book"}
    assert (row["seed"], row["toolsets"], row["usage"]["requests"]) == (3, ["math"], 2)
    assert row["sampling"]["temperature"] == 0.5
    assert [tool["function"]["name"] for tool in row["tools"]] == ["calculator"]
    assert row["cost_usd"] == 0.0  # this computer answered


def test_the_messages_api_answers_as_well(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        done = "tool_result" in json.dumps(request.body["messages"][-1])
        return (
            Reply("42", reasoning="so") if done else Reply(calls=[Call("calculator", {"expression": "6*7"})])
        )

    with WireServer(answer) as server:
        input_ = write_prompts(tmp_path / "in.jsonl", ["a", "b"])
        ended = make(input_, server, model="anthropic/m", base_url=server.anthropic_url)
        assert not server.violations
    assert (ended.exit_code, [row["tool_stats"]["calculator"]["success"] for row in rows()]) == (0, [1, 1])


def test_every_sample_is_asked_with_a_seed_of_its_own(tmp_path: Path) -> None:
    with WireServer(agent) as server:
        make(write_prompts(tmp_path / "in.jsonl", ["a", "a", "b"]), server, samples=3)
        seeds = [r.body["seed"] for r in server.requests if r.body["messages"][-1]["role"] == "user"]
    assert len(set(seeds)) == len(seeds) == 9
    assert prompts_done() == {"a": 6, "b": 3}


def test_an_ephemeral_system_prompt_is_said_and_not_stored_and_prefilled_messages_are_both(
    tmp_path: Path,
) -> None:
    prefill = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi", "reasoning": "h"}]
    with WireServer(agent) as server:
        input_ = write_prompts(tmp_path / "in.jsonl", ["a"])
        make(input_, server, system_prompt="be brief", prefill=prefill)
        said = server.requests[0].body["messages"]
    assert [(m["role"], m["content"]) for m in said] == [
        ("system", "be brief"),
        ("user", "hello"),
        ("assistant", "hi"),
        ("user", "a"),
    ]
    assert [m["role"] for m in rows()[0]["messages"]][:3] == ["user", "assistant", "user"]
    assert rows()[0]["reasoning"] == {"turns": 2, "with": 2}, "of what was asked for here"
    assert "be brief" not in json.dumps(entries())


def test_marks_tell_what_is_wrong_with_a_row(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        asked = str(request.body["messages"][0]["content"])
        again = request.body["messages"][-1]["role"] == "tool"
        if asked == "invents" and not again:
            return Reply(calls=[Call("teleport", {"to": "Mars"})])
        if asked == "breaks" and not again:
            return Reply(calls=[Call("calculator", '{"expression": ')])
        if asked == "goes on":
            return Reply(calls=[Call("calculator", {"expression": "1"})])
        return Reply("" if asked == "says nothing" else "fine")

    with WireServer(answer, strict=False) as server:
        prompts = ["invents", "breaks", "goes on", "says nothing"]
        make(write_prompts(tmp_path / "in.jsonl", prompts), server, max_turns=2)
    marks = {row["messages"][0]["content"]: row["marks"] for row in rows()}
    assert marks["invents"] == ["invented_tool", "no_reasoning"]
    assert marks["goes on"] == ["incomplete", "max_turns", "no_reasoning"]
    assert marks["says nothing"] == ["empty_answer", "no_reasoning"]
    assert "bad_call" in marks["breaks"]


def test_secrets_are_masked_before_they_are_written(tmp_path: Path) -> None:
    key = "sk-proj-" + "Ab3dEf6hIj9lMn2pQr5t" * 2
    with WireServer(lambda request: Reply(f"your key is {key}")) as server:
        input_ = write_prompts(tmp_path / "in.jsonl", ["what is it?"])
        make(input_, server)
        make(input_, server, name="raw", redact=False)
    assert key not in json.dumps(entries())
    assert "redacted" in rows()[0]["marks"]
    assert key in json.dumps(entries("raw"))


def test_toolsets_are_drawn_by_seed_and_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "toolsets.yaml"
    own.write_text("distributions: {half: {toolsets: {math: 50, files: 50, terminal: 50}}}")
    monkeypatch.setenv("RL_CLI_TOOLSETS_FILE", str(own))
    input_ = write_prompts(tmp_path / "in.jsonl", [f"p{n}" for n in range(12)])
    drawn = []
    with WireServer(agent) as server:
        for name, seed in (("one", 1), ("two", 1), ("three", 2)):
            given: dict[str, Any] = {"name": name, "seed": seed, "toolsets": None, "distribution": "half"}
            plan = plan_of(config(input_, server, **given))
            make(input_, server, **given)
            assert plan.draws == Counter(tuple(row["toolsets"]) for row in rows(name)), (
                "a dry run draws the same"
            )
            drawn.append({row["messages"][0]["content"]: tuple(row["toolsets"]) for row in rows(name)})
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0].values())) > 2
