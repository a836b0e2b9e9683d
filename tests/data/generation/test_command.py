"""`rl-cli data generate` and `resume`, as a person uses them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rl_cli.cli.main import run
from rl_cli.data.batch.folder import batch_folder
from tests.data.generation.batches import (
    FAILS,
    agent,
    entries,
    prompts_done,
    question,
    rows,
    write_prompts,
)
from tests.e2e.cli import Outcome
from tests.e2e.terminal import Terminal
from tests.wire.server import Answer, Call, Reply, Request, WireServer

EXAMPLES = Path(__file__).parents[3] / "examples" / "datagen"


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer(agent) as server:
        yield server


RunHere = Callable[..., Outcome]


@pytest.fixture
def rl_cli(capsys: pytest.CaptureFixture[str]) -> RunHere:
    """The command in this process, as its entry point runs it."""

    def here(*words: str) -> Outcome:
        code = run(list(words))
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return here


def _solves(request: Request) -> Answer:
    """Right at every second try, in a terminal where there is one."""
    names = {tool["function"]["name"] for tool in request.body.get("tools", [])}
    if "bash" in names and request.body["messages"][-1]["role"] != "tool":
        return Reply(calls=[Call("bash", {"command": "pwd"})])
    if "bash" in names:
        return Reply(calls=[Call("finish", {"answer": "done"})])
    asked = str(request.body["messages"][-1]["content"])
    right = 42 if "baker" in asked else 17 if "marbles" in asked else 85
    return Reply(f"The answer is {right if request.number % 2 else 7}.", reasoning="so")


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.yaml")))
def test_the_examples_run(example: str, server: WireServer, rl_cli: RunHere) -> None:
    server.set(_solves)
    words = ["data", "generate", "--config", str(EXAMPLES / example), "--model", "openai/m", "--yes"]
    done = rl_cli(*words, "--base-url", server.openai_url, "--sandbox", "local")
    assert done.code == 0, done.err
    name = example.removesuffix(".yaml").replace("_", "-")
    statistics = json.loads(batch_folder(name).statistics.read_text())
    assert statistics["merged"] >= 2
    assert statistics["pending"] == 0
    if example == "rejection.yaml":
        assert statistics["evaluation"]


def test_a_dry_run_tells_draws_and_cost_and_asks_nothing(
    tmp_path: Path, server: WireServer, rl_cli: RunHere
) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", ["a", "b", {"no": "text"}])
    words = ["data", "generate", "--input", str(input_), "--name", "b", "--toolsets", "math"]
    done = rl_cli(*words, "--samples", "3", "--model", "anthropic/claude-sonnet-5-5", "--dry-run")
    assert done.code == 0, done.err
    assert "samples to ask" in done.out
    assert "6" in done.out
    assert "offered: math" in done.out
    assert "$" in done.out
    words += ["--score", "gsm8k", "--eval-every", "1", "--eval-held-out", "1", "--dry-run", "--json"]
    plan = json.loads(rl_cli(*words, "--target", "2", "--min-score", "0").out)
    assert (plan["items"], plan["samples"], plan["bad_rows"]) == (1, 8, 1)
    assert plan["offered"] == [{"toolsets": ["math"], "items": 1}]
    assert not server.requests
    assert not batch_folder("b").exists()


def test_a_dry_run_tells_what_is_missing_to_begin(tmp_path: Path, rl_cli: RunHere) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", ["a"])
    words = ["data", "generate", "--input", str(input_), "--name", "b", "--dry-run"]
    no_key = rl_cli(*words, "--model", "openai/m")
    assert "it cannot begin yet: openai/m needs a key" in no_key.err
    assert "builtin/operator makes no training data" in rl_cli(*words).err
    assert "samples to ask" in no_key.out
    typo = rl_cli(*words, "--model", "openai/m", "--score", "gsm8")
    assert (typo.code, typo.out) == (2, "")
    assert "did you mean gsm8k" in typo.err
    words += ["--score", "gsm8k", "--eval-every", "1", "--eval-held-out", "1", "--model", "openai/m"]
    assert "no items beside those to be held out" in rl_cli(*words).err


def test_a_dry_run_counts_rows_whose_image_the_sandbox_does_not_take(tmp_path: Path, rl_cli: RunHere) -> None:
    input_ = tmp_path / "in.jsonl"
    input_.write_text('{"prompt": "a"}\n{"prompt": "b", "image": "python:3"}\n')
    words = ["data", "generate", "--input", str(input_), "--name", "b", "--toolsets", "math", "--dry-run"]
    told = rl_cli(*words, "--sandbox", "local").out
    assert "items without a sandbox" in told
    assert "1 (local starts from no image, and python:3 is asked for)" in told
    assert json.loads(rl_cli(*words, "--sandbox", "local", "--json").out)["no_sandbox"] == 1
    assert "items without" not in rl_cli(*words, "--sandbox", "docker").out


def test_a_batch_in_containers_wants_an_image_before_anything_is_asked(
    tmp_path: Path, server: WireServer, rl_cli: RunHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    input_ = write_prompts(tmp_path / "in.jsonl", ["a"])
    words = ["data", "generate", "--input", str(input_), "--name", "b", "--model", "openai/m", "--yes"]
    done = rl_cli(*words, "--base-url", server.openai_url, "--toolsets", "terminal", "--sandbox", "docker")
    assert (done.code, server.requests) == (2, [])
    assert "docker starts from an image, and none is named" in done.err
    assert not batch_folder("b").exists()


def test_rows_that_a_merge_discards_are_told_at_the_end(
    tmp_path: Path, server: WireServer, rl_cli: RunHere
) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", ["a", "b"])
    server.set(lambda request: agent(request) if len(request.body["messages"]) > 1 else _invents(request))
    words = ["data", "generate", "--input", str(input_), "--name", "b", "--model", "openai/m", "--yes"]
    done = rl_cli(*words, "--base-url", server.openai_url, "--toolsets", "math", "--sandbox", "local")
    assert done.code == 0, done.err
    assert "0 rows kept, discarded: 2 invented_tool" in done.err


def _invents(request: Request) -> Answer:
    return Reply(calls=[Call("no_such_tool", {})])


def test_a_trial_first_and_then_the_rest_and_bad_rows_are_told(
    tmp_path: Path, server: WireServer, rl_cli: RunHere
) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", ["a", ["no"], "b", 17])
    words = ["data", "generate", "--input", str(input_), "--name", "b", "--model", "openai/m", "--yes"]
    words += ["--base-url", server.openai_url, "--toolsets", "math", "--sandbox", "local"]
    first = rl_cli(*words, "--max-samples", "1")
    assert first.code == 0, first.err
    assert prompts_done() == {"a": 1}
    second = rl_cli(*words)
    assert second.code == 0, second.err
    assert "line 2 is passed over" in second.err
    assert prompts_done() == {"a": 1, "b": 1, "17": 1}
    assert "3 done, 0 failed" in second.err
    other = rl_cli(*words, "--temperature", "0.3")
    assert other.code == 2
    assert "temperature was None and is 0.3" in other.err


def test_resume_goes_on_with_the_settings_of_the_batch(
    tmp_path: Path, server: WireServer, rl_cli: RunHere
) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", [f"p{n}" for n in range(6)])
    server.set(lambda request: agent(request) if request.number < 4 else FAILS)
    words = ["data", "generate", "--input", str(input_), "--name", "b", "--model", "openai/m", "--yes"]
    words += ["--base-url", server.openai_url, "--toolsets", "math", "--sandbox", "local"]
    first = rl_cli(*words, "--concurrency", "2", "--give-up-after", "3")
    assert first.code == 1
    assert "it broke" in first.err
    assert "rl-cli data resume b" in first.err
    assert 0 < len(entries()) < 6
    server.set(agent)
    done = rl_cli("data", "resume", "b", "--yes")
    assert done.code == 0, done.err
    assert len(rows()) == 6
    shown = json.loads(rl_cli("data", "stats", "b", "--json").out)
    assert (shown["done"], shown["pending"], shown["merged"]) == (6, 0, 6)


def test_what_failed_is_asked_again_where_a_person_says_so_and_its_record_stays(
    tmp_path: Path, server: WireServer, rl_cli: RunHere
) -> None:
    def filters(request: Request) -> Answer:
        return (
            Reply("I", finish="content_filter") if question(request) in ("bad", "worse") else agent(request)
        )

    server.set(filters)
    input_ = write_prompts(tmp_path / "in.jsonl", ["a", "bad", "worse", "b"])
    words = ["data", "generate", "--input", str(input_), "--name", "b", "--model", "openai/m", "--yes"]
    words += ["--base-url", server.openai_url, "--toolsets", "math", "--sandbox", "local"]
    first = rl_cli(*words, "--max-samples", "3")
    assert first.code == 1
    assert "rl-cli data resume b --retry-failed asks again" in first.err
    begun = len(server.requests)
    assert rl_cli("data", "resume", "b", "--yes").code == 1
    assert len(server.requests) == begun, "a failed one is final"
    server.set(lambda request: filters(request) if question(request) == "worse" else agent(request))
    again = rl_cli("data", "resume", "b", "--retry-failed", "--yes", "--json")
    found = json.loads(again.out)
    assert (again.code, found["done"], found["failed"], found["retried"]) == (1, 2, {"content_filter": 1}, 2)
    assert found["requests"] == len(server.requests), "what the failures took is still counted"
    assert Counter(map(question, server.requests[begun:])) == {"bad": 2, "worse": 1}
    state = batch_folder("b").state()
    assert (state["items"], state["expected"], state["done"], state["failed"]) == (3, 3, 2, 1)
    assert [entry["state"] for entry in entries()].count("failed") == 3
    assert rl_cli(*words).code == 1
    assert prompts_done() == {"a": 1, "bad": 1, "b": 1}


def test_an_input_that_is_damaged_in_the_middle_costs_nothing_that_is_in_flight(
    tmp_path: Path, server: WireServer, rl_cli: RunHere
) -> None:
    input_ = tmp_path / "in.json"
    input_.write_text('[{"prompt": "a"}, {"prompt": "b"}, {"prompt" "c"}]')
    words = ["data", "generate", "--input", str(input_), "--name", "b", "--model", "openai/m", "--yes"]
    done = rl_cli(*words, "--base-url", server.openai_url, "--toolsets", "math", "--sandbox", "local")
    assert done.code == 2
    assert "damaged in row 3" in done.err
    assert prompts_done() == {"a": 1, "b": 1}
    assert batch_folder("b").state()["state"] == "failed"
    input_.write_text('[{"prompt": "a"}, {"prompt": "b"}, {"prompt": "c"}]')
    assert rl_cli("data", "resume", "b").code == 0
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--model", "openai/m", "--toolsets", "maths"], "unknown toolset 'maths'"),
        (["--model", "openai/m", "--toolsets", "rl"], "the assistant's own"),
        (["--model", "opemai/m"], "unknown model"),
        (["--model", "builtin/operator"], "makes no training data"),
        (["--model", "openai/m", "--sandbox", "dockr"], "did you mean docker"),
        (["--model", "openai/m", "--distribution", "sciense"], "did you mean science"),
        (["--model", "openai/m", "--executor", "spark"], "executor"),
        (["--model", "openai/m", "--concurrency", "0"], "concurrency"),
        (["--model", "openai/m", "--max-samples", "9" * 30], "max_samples should be less"),
        (["--model", "openai/m", "--min-score", "0"], "min_score needs score"),
        (["--model", "openai/m", "--sandbox", "local", "--image", "debian"], "local starts from no image"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_begun(
    tmp_path: Path, words: list[str], told: str, rl_cli: RunHere
) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", ["a"])
    given = ["data", "generate", "--input", str(input_), "--name", "b", "--yes"]
    done = rl_cli(*given, "--base-url", "http://127.0.0.1:9/v1", *words)
    if "operator" in words[1]:
        done = rl_cli(*given, *words)
    assert (done.code, told in done.err) == (2, True), done.err
    assert not batch_folder("b").exists()


def test_an_input_without_a_row_begins_nothing(tmp_path: Path, rl_cli: RunHere) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", [["no"], {"no": 1}])
    words = ["data", "generate", "--input", str(input_), "--name", "b", "--model", "openai/m"]
    done = rl_cli(*words, "--base-url", "http://127.0.0.1:9/v1", "--sandbox", "local")
    assert done.code == 2
    assert "line 1" in done.err
    assert not batch_folder("b").exists()


def test_what_is_logged_of_an_item_begins_with_its_number(
    tmp_path: Path, server: WireServer, rl_cli: RunHere
) -> None:
    server.set(lambda request: Reply(calls=[Call("terminal", {"command": "true"})]))
    input_ = tmp_path / "in.jsonl"
    input_.write_text('{"prompt": "a"}\n{"prompt": "b", "cwd": "/no/such/folder\\u001b[2J"}\n')
    words = ["data", "generate", "--input", str(input_), "--name", "b", "--model", "openai/m", "--yes"]
    words += ["--base-url", server.openai_url, "--toolsets", "terminal", "--sandbox", "local"]
    done = rl_cli(*words, "--max-turns", "1")
    assert done.code == 1
    log = (batch_folder("b").path / "batch.log").read_text()
    assert "[item 2] " in log
    assert "\x1b" not in log
    failed = next(entry for entry in entries() if entry["state"] == "failed")
    assert (failed["reason"], failed["attempts"]) == ("sandbox", 2)
    assert "/no/such/folder" in failed["error"]


def test_a_terminal_shows_a_bar_that_stays_in_place(tmp_path: Path, server: WireServer) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", ["a", "b"])
    words = ["data", "generate", "--input", str(input_), "--name", "b", "--model", "openai/m", "--yes"]
    words += ["--base-url", server.openai_url, "--toolsets", "math", "--sandbox", "local"]
    with Terminal(*words) as terminal:
        terminal.expect("2 of 2 ended")
        terminal.expect("b: finished, 2 done")


def test_a_batch_is_called_as_its_folder_which_may_have_been_moved_or_copied(
    tmp_path: Path, server: WireServer, rl_cli: RunHere
) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", ["a", "b"])
    words = ["data", "generate", "--input", str(input_), "--model", "openai/m", "--yes"]
    words += ["--base-url", server.openai_url, "--toolsets", "math", "--sandbox", "local"]
    assert rl_cli(*words, "--name", "b").code == 0
    begun = len(server.requests)
    batch_folder("b").path.rename(batch_folder("moved").path)
    resumed = rl_cli("data", "resume", "moved", "--yes", "--json")
    assert (resumed.code, json.loads(resumed.out)["done"]) == (0, 2)
    assert rl_cli(*words, "--name", "moved").code == 0
    assert (len(server.requests), batch_folder("b").exists()) == (begun, False)


def test_what_the_input_no_longer_has_is_not_said_to_be_asked_again(
    tmp_path: Path, server: WireServer, rl_cli: RunHere
) -> None:
    server.set(lambda r: Reply("I", finish="content_filter") if question(r) == "bad" else agent(r))
    input_ = write_prompts(tmp_path / "in.jsonl", ["a", "bad"])
    words = ["data", "generate", "--input", str(input_), "--name", "b", "--model", "openai/m", "--yes"]
    assert (
        rl_cli(*words, "--base-url", server.openai_url, "--toolsets", "math", "--sandbox", "local").code == 1
    )
    write_prompts(input_, ["a"])
    again = rl_cli("data", "resume", "b", "--retry-failed", "--yes")
    assert again.code == 1
    assert "1 sample failed (no more asked for: of items that the input no longer has" in again.err


def test_what_an_environment_prints_is_no_part_of_the_figures(
    tmp_path: Path, server: WireServer, rl_cli: RunHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_envs").mkdir()
    code = (
        "from environments.base import Environment, Reward\n\nclass Loud(Environment):\n    name = 'loud'\n"
    )
    code += "    description = 'Prints.'\n    async def reward(self, task, rollout, ctx):\n"
    code += "        print('scored')\n        return Reward(1.0)\n"
    (tmp_path / "my_envs" / "loud.py").write_text(code)
    monkeypatch.setenv("RL_CLI_ENVIRONMENTS_DIR", str(tmp_path / "my_envs"))
    words = ["--base-url", server.openai_url, "--toolsets", "math", "--sandbox", "local", "--score", "loud"]
    input_ = write_prompts(tmp_path / "in.jsonl", ["a"])
    done = rl_cli(
        *("data", "generate", "--input", str(input_), "--name", "b", "--model", "openai/m", "--yes"),
        *(*words, "--json"),
    )
    assert json.loads(done.out)["score"]["mean"] == 1.0
    assert "scored" in done.err
