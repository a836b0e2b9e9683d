"""A compression that is killed at any moment goes on: no row is lost or doubled, no summary paid twice."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.data.compression.kit import read_rows, save_tokenizer, turns_row, write_rows
from tests.data.compression.paying import asked, paid, run, start, wait_for
from tests.wire.replies import Reply
from tests.wire.server import Request, WireServer

SUMMARY = "All of it was read."


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def name_of(request: Request) -> str:
    """A summary that tells what it was asked for."""
    return hashlib.sha256(json.dumps(request.body["messages"]).encode()).hexdigest()


def killed_again_and_again(folder: Path, tokenizer: Path, kills: int, count: int, seed: int) -> None:
    rng = random.Random(seed)
    rows = [turns_row(rng, [900] * rng.randrange(1, 12), f"{n:x}-0-0") for n in range(count)]
    write_rows(folder / "in.jsonl", rows)
    in_flight = 8
    with WireServer(lambda request: Reply(name_of(request), delay=0.03)) as server:
        for _ in range(kills):
            before = len(server.requests)
            kept = paid(folder)
            process = start(server, folder, tokenizer, "--concurrency", str(in_flight))
            target = before + rng.randrange(1, max(2, count // (kills + 1)))
            wait_for(server, target, process)
            time.sleep(rng.random() * 0.05)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
            assert paid(folder)[: len(kept)] == kept
        finished = {line["text"] for line in paid(folder)}
        before = [name_of(request) for request in server.requests if request.body]
        assert run(server, folder, tokenizer).code == 0
        after = [name_of(request) for request in server.requests if request.body]
        assert all(after.count(name) == before.count(name) for name in finished)
        repeated = sum(asked(server).values()) - len(asked(server))
        assert repeated <= kills * in_flight  # those that were under way
        lines = paid(folder)
    assert len({line["key"] for line in lines}) == len(lines)
    assert finished <= {line["text"] for line in lines}
    made = read_rows(folder / "out.jsonl")
    assert [row["key"] for row in made] == [row["key"] for row in rows]
    undisturbed = folder / "undisturbed"
    undisturbed.mkdir()
    write_rows(undisturbed / "in.jsonl", rows)
    with WireServer(lambda request: Reply(name_of(request))) as server:
        assert run(server, undisturbed, tokenizer).code == 0
    assert (undisturbed / "out.jsonl").read_bytes() == (folder / "out.jsonl").read_bytes()


def test_kills(tmp_path: Path, tokenizer: Path) -> None:
    killed_again_and_again(tmp_path, tokenizer, kills=3, count=60, seed=1)


@pytest.mark.soak
@pytest.mark.waits
def test_many_kills(tmp_path: Path, tokenizer: Path) -> None:
    killed_again_and_again(tmp_path, tokenizer, kills=12, count=300, seed=2)


def test_the_first_interrupt_finishes_what_is_under_way(tmp_path: Path, tokenizer: Path) -> None:
    rng = random.Random(3)
    write_rows(tmp_path / "in.jsonl", [turns_row(rng, [900] * 10, f"{n:x}-0-0") for n in range(40)])

    def pressing(request: Request) -> Reply:
        if request.number == 6:
            os.kill(os.getpid(), signal.SIGINT)
        return Reply(SUMMARY, delay=0.3)

    with WireServer(pressing) as server:
        stopped = run(server, tmp_path, tokenizer, "--concurrency", "4")
        assert (stopped.code, "which are kept" in stopped.err) == (130, True)
        assert len(paid(tmp_path)) == len(server.requests) < 20
        assert run(server, tmp_path, tokenizer).code == 0
        assert max(asked(server).values()) == 1
    assert len(read_rows(tmp_path / "out.jsonl")) == 40


def test_nobody_else_writes_the_output_until_the_second_interrupt_stops_it(
    tmp_path: Path, tokenizer: Path
) -> None:
    rng = random.Random(3)
    write_rows(tmp_path / "in.jsonl", [turns_row(rng, [900] * 10, f"{n:x}-0-0") for n in range(40)])
    with WireServer(lambda request: Reply(SUMMARY, delay=600)) as server:
        process = start(server, tmp_path, tokenizer)
        wait_for(server, 6, process)
        second = run(server, tmp_path, tokenizer)
        assert (second.code, "another process" in second.err) == (2, True)
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert not (tmp_path / "out.jsonl").exists()
