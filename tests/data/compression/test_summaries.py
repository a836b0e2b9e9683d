"""Summaries by a model behind a real endpoint: what is sent, what is paid, what happens where none comes."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.files import read_jsonl
from tests.data.compression.kit import chat_row, read_rows, save_tokenizer, turns_row, write_rows
from tests.data.compression.paying import asked, paid, run
from tests.wire.replies import Refusal, Reply, Tokens
from tests.wire.server import Request, WireServer

SUMMARY = "The files were read; file3 names port 8080."


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def long_rows(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Each needs one summary."""
    rng = random.Random(seed)
    make = (turns_row, chat_row)
    return [make[n % 2](rng, [900] * 10, f"{n:x}-0-0") for n in range(count)]


def test_a_summary_takes_the_place_of_turns_and_is_paid_once(tmp_path: Path, tokenizer: Path) -> None:
    rows = write_rows(tmp_path / "in.jsonl", long_rows(6))
    used = Tokens(1_000, 20)
    with WireServer(lambda request: Reply(SUMMARY, usage=used)) as server:
        first = run(server, tmp_path, tokenizer)
        assert first.code == 0, first.err
        (report,) = first.rows()
        assert (report["compressed"], report["calls"], report["over_limit"]) == (6, 6, 0)
        for row, before in zip(read_rows(tmp_path / "out.jsonl"), read_rows(rows), strict=True):
            (place,) = row["metadata"]["summary_turns"]
            turn = (row.get("messages") or row["conversations"])[place]
            assert SUMMARY in (turn.get("content") or turn["value"])
            assert row["key"] == before["key"]
        assert not server.violations
        again = run(server, tmp_path, tokenizer)
        assert again.code == 0, again.err
        wider = run(server, tmp_path, tokenizer, "--max-tokens", "1500")
        assert wider.code == 0, wider.err
        assert len(server.requests) == len(asked(server))
        assert again.rows()[0]["cost_usd"] == report["cost_usd"]
        content = server.requests[0].body["messages"]
        assert "at most 120 words" in content[0]["content"]
        assert re.search(r"^gpt: ", content[1]["content"], re.MULTILINE)
    assert {line["text"] for line in paid(tmp_path)} == {SUMMARY}


def test_equal_rows_share_one_summary(tmp_path: Path, tokenizer: Path) -> None:
    (row,) = long_rows(1)
    write_rows(tmp_path / "in.jsonl", [row, {**row, "key": "other"}, row])
    with WireServer(lambda request: Reply(SUMMARY, delay=0.05, usage=Tokens(1_000, 20))) as server:
        (report,) = run(server, tmp_path, tokenizer).rows()
        assert len(server.requests) == 1 == report["calls"]
    assert report["compressed"] == 3


def test_one_client_serves_all_requests(tmp_path: Path, tokenizer: Path) -> None:
    write_rows(tmp_path / "in.jsonl", long_rows(10))
    with WireServer(lambda request: Reply(SUMMARY)) as server:
        connections: list[int] = []
        accept = server._http.get_request
        server._http.get_request = lambda: connections.append(1) or accept()  # type: ignore[method-assign]
        assert run(server, tmp_path, tokenizer, "--concurrency", "1").code == 0
        assert len(server.requests) == 10
    assert 0 < len(connections) < 4


def test_rows_without_a_summary_stay_as_they_were_and_are_asked_for_again(
    tmp_path: Path, tokenizer: Path
) -> None:
    rows = long_rows(8)
    write_rows(tmp_path / "in.jsonl", rows)
    texts = [json.dumps(row) for row in rows]
    first_of = {row["key"]: number for number, row in enumerate(rows)}

    def some(request: Request) -> Reply | Refusal:
        return Refusal(400, "no such thing") if len(asked(server)) % 2 else Reply(SUMMARY)

    with WireServer(some) as server:
        outcome = run(server, tmp_path, tokenizer, "--concurrency", "1")
        assert outcome.code == 1
        assert "got no summary" in outcome.err
        (report,) = outcome.rows()
        made = read_rows(tmp_path / "out.jsonl")
        assert [row["key"] for row in made] == [row["key"] for row in rows]
        failed = [row for row in made if "summary" not in row["marks"]]
        assert report["failed"] == len(failed) == report["over_limit"] > 0
        for row in failed:
            assert json.dumps(row) == texts[first_of[row["key"]]]
        details = list(read_jsonl(tmp_path / "out.jsonl.compress" / "rows.jsonl"))
        assert sum("no such thing" in row["reason"] for row in details) == len(failed)
        done = len(paid(tmp_path))
        server.set(lambda request: Reply(SUMMARY))
        before = len(server.requests)
        again = run(server, tmp_path, tokenizer)
        assert again.code == 0, again.err
        assert len(server.requests) - before == 8 - done
    assert all("summary" in row["marks"] for row in read_rows(tmp_path / "out.jsonl"))


def test_a_late_summary_leaves_the_row(tmp_path: Path, tokenizer: Path) -> None:
    rows = long_rows(2)
    write_rows(tmp_path / "in.jsonl", rows)
    with WireServer(lambda request: Reply(SUMMARY, delay=30)) as server:
        outcome = run(server, tmp_path, tokenizer, "--summary-seconds", "0.5")
    assert outcome.code == 1
    assert read_rows(tmp_path / "out.jsonl") == rows
    details = read_jsonl(tmp_path / "out.jsonl.compress" / "rows.jsonl")
    assert all("0.5 s" in row["reason"] for row in details)


def test_a_provider_that_only_fails_is_not_asked_for_ever(tmp_path: Path, tokenizer: Path) -> None:
    rows = long_rows(30)
    write_rows(tmp_path / "in.jsonl", rows)
    with WireServer(lambda request: Refusal(401, "wrong key", code="invalid_api_key")) as server:
        outcome = run(server, tmp_path, tokenizer, "--concurrency", "2")
        assert len(server.requests) < 15
    assert outcome.code == 1
    assert "nothing more was asked" in outcome.err
    assert outcome.rows()[0]["failed"] == 30
    assert read_rows(tmp_path / "out.jsonl") == rows
    with WireServer(lambda request: Reply(SUMMARY)) as server:
        assert run(server, tmp_path, tokenizer).code == 0


def test_an_answer_without_text_is_paid_and_no_summary(tmp_path: Path, tokenizer: Path) -> None:
    write_rows(tmp_path / "in.jsonl", long_rows(1))
    with WireServer(lambda request: Reply("", reasoning="Hm.", usage=Tokens(900, 5))) as server:
        outcome = run(server, tmp_path, tokenizer)
        (report,) = outcome.rows()
        assert report["calls"] == len(server.requests)
    assert (outcome.code, report["failed"]) == (1, 1)


def test_an_empty_budget_is_refused(tmp_path: Path, tokenizer: Path, home: Path) -> None:
    rows = long_rows(6)
    write_rows(tmp_path / "in.jsonl", rows)
    config = tmp_path / "config" / "rl-cli"
    config.mkdir(parents=True)
    (config / "config.yaml").write_text("budgets: {session: {tokens: 12000}}\n")
    with WireServer(lambda request: Reply(SUMMARY, usage=Tokens(3_000, 20))) as server:
        outcome = run(server, tmp_path, tokenizer, "--concurrency", "1")
    assert outcome.code == 3, outcome.err
    (report,) = outcome.rows()
    assert 0 < report["compressed"] < 6
    assert report["compressed"] + report["failed"] == 6
    assert len(read_rows(tmp_path / "out.jsonl")) == 6


def test_nothing_is_paid_for_a_row_that_cannot_fit(tmp_path: Path, tokenizer: Path) -> None:
    unshortened, numbers = (turns_row(random.Random(1), [9_000, *[900] * 10]) for _ in range(2))
    unshortened["conversations"][3]["value"] += "and text beside the result"
    numbers["conversations"][1]["value"] *= 40
    write_rows(tmp_path / "in.jsonl", [unshortened, numbers])
    with WireServer(lambda request: Reply(SUMMARY)) as server:
        (report,) = run(server, tmp_path, tokenizer).rows()
        assert not server.requests
    assert report["cannot_fit"] == report["over_limit"] == 2


def test_a_summary_that_is_too_long_is_cut(tmp_path: Path, tokenizer: Path) -> None:
    write_rows(tmp_path / "in.jsonl", long_rows(2))
    shapes = ["It went on and on. " * 500, "漢字🙂" * 400 + " " * 50_000]
    with WireServer(lambda request: Reply(shapes[len(server.requests) % 2])) as server:
        (report,) = run(server, tmp_path, tokenizer).rows()
    assert (report["compressed"], report["over_limit"]) == (2, 0)


def test_secrets_are_neither_sent_nor_kept_in_a_summary(tmp_path: Path, tokenizer: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    row = turns_row(random.Random(1), [900] * 10)
    row["conversations"][5]["value"] = row["conversations"][5]["value"].replace(
        "output", f"key {secret} output", 1
    )
    write_rows(tmp_path / "in.jsonl", [row])
    with WireServer(lambda request: Reply(f"A key was found: {secret}.")) as server:
        assert run(server, tmp_path, tokenizer).code == 0
        assert secret not in json.dumps(server.requests[0].body)
    for path in (tmp_path / "out.jsonl", *(tmp_path / "out.jsonl.compress").glob("*.json*")):
        assert secret not in path.read_text("utf-8")
