"""Faults that users of such systems reported, by id: what a person, and the model, is told."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from environments.catalogue import describe
from environments.parsers.base import ParsedCall
from environments.parsers.families import FAMILIES
from tests.e2e.cli import command, rl_cli
from tests.wire.server import Reply, WireServer

GOLDS = {"2,400,000": "2400000", "0.5": "1/2", "-7": "-7.0"}
"""As the rows have them, and the same number as an answer may state it."""


def solutions() -> list[str]:
    return [f"It is so.\n#### {gold}" for gold in GOLDS]


def write_rows(folder: Path, *more: str) -> None:
    for name in ("train", "test"):
        rows = [{"question": f"{name}: what is it, {n}?", "answer": a} for n, a in enumerate(solutions())]
        rows += [{"question": f"{name}: and {text}?", "answer": text} for text in more]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_grd_05_the_loader_tells_how_many_rows_are_usable_and_which_is_not(tmp_path: Path) -> None:
    write_rows(tmp_path)
    told = describe("gsm8k", {"path": str(tmp_path)})
    assert (told["sizes"]["test"], told["problem"]) == (3, None)
    assert told["sizes"]["train"] + told["sizes"]["validation"] == 3
    write_rows(tmp_path, "#### about as many")
    told = describe("gsm8k", {"path": str(tmp_path)})
    assert told["sizes"] is None
    assert "train.jsonl line 4: the answer must end in a number" in told["problem"]


def test_grd_05_the_numbers_of_golds_are_told() -> None:
    given = list(zip(solutions(), GOLDS.values(), strict=True))
    wrong = list(zip(solutions(), ["2.4", "5", "7"], strict=True))
    lines = [{"id": n, "gold": gold, "answer": answer} for n, (gold, answer) in enumerate([*given, *wrong])]
    done = subprocess.run(
        command("grade", "--jsonl"),
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=60,
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["correct"] for row in told] == [True] * 3 + [False] * 3
    assert [row["extracted"] for row in told] == [line["answer"] for line in lines]
    assert done.stderr.startswith("6 graded: 3 correct")
    assert done.stderr.endswith("0 unusable golds\n")


@pytest.mark.parametrize("value", ["2026-01-15", "seven", "1,5", "[1,2"])
def test_agt_27_the_model_and_the_person_are_told_what_does_not_fit(value: str) -> None:
    call = FAMILIES["qwen3_coder"].render([ParsedCall("rl_list_runs", json.dumps({"limit": value}))])
    with WireServer([Reply(text=call), Reply(text="I could not.")]) as server:
        place = ("--model", "openai/qwen3-coder", "--base-url", server.openai_url)
        told = rl_cli(
            "ask", "--json", *place, "which runs are there?", OPENAI_API_KEY="sk-the-key-of-this-test"
        )
    message = f'"limit" must be a valid integer, not "{value}"'
    asked, answered = server.requests[1].body["messages"][-2:]
    assert json.loads(asked["tool_calls"][0]["function"]["arguments"]) == {"limit": value}
    assert json.loads(answered["content"])["error"] == {
        "type": "invalid_arguments",
        "message": message,
        "hint": "call rl_list_runs(limit: integer = 20)",
    }
    (shown,) = [event["result"] for event in told.rows() if event["kind"] == "result"]
    assert shown["error"]["message"] == message
    assert told.code == 0
