"""Batches killed at random moments: nothing lost, nothing doubled, nothing asked again that had ended."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rl_cli.data.batch.filters import Filters
from rl_cli.data.batch.folder import batch_folder
from rl_cli.data.batch.merge import merge
from tests.components import mounts
from tests.data.generation.batches import agent, entries, make, prompts_done, write_prompts
from tests.data.generation.kills import killed_again_and_again, whole
from tests.wire.server import WireServer

SIZES = [
    pytest.param(1, id="small"),
    pytest.param(4, id="full", marks=[pytest.mark.soak, pytest.mark.waits]),
]
"""How many times as many kills: 12 in all, and 48 (with those of ray and of the compressor, 60)."""


@pytest.mark.parametrize("size", SIZES)
def test_a_plain_batch(tmp_path: Path, home: Path, size: int) -> None:
    prompts = [f"p{n}" for n in range(300 if size > 1 else 60)]
    input_ = write_prompts(tmp_path / "in.jsonl", prompts)
    report = killed_again_and_again(input_, home, 4 * size, 60 if size > 1 else 45, 1)
    print(f"\n{report.kills} kills, with {report.ended_at} samples ended by then")
    assert report.repeated == 0
    whole(Counter(prompts))


@pytest.mark.parametrize("size", SIZES)
def test_bat_02_several_samples_of_prompts_that_are_repeated(tmp_path: Path, home: Path, size: int) -> None:
    prompts = ["same"] * 4 * size + [f"p{n}" for n in range(10 * size)] + ["other"] * 2
    input_ = write_prompts(tmp_path / "in.jsonl", prompts)
    report = killed_again_and_again(input_, home, 3 * size, 3 * len(prompts) // (2 * size), 2, samples=3)
    assert report.repeated == 0
    whole(Counter({prompt: 3 * count for prompt, count in Counter(prompts).items()}))


@pytest.mark.parametrize("size", SIZES)
def test_bat_03_an_input_that_is_edited_between_the_starts(tmp_path: Path, home: Path, size: int) -> None:
    rng = random.Random(3)
    prompts: list[Any] = [f"p{n}" for n in range(40 * size)] + ["twice"] * 2
    input_ = write_prompts(tmp_path / "in.jsonl", prompts)
    removed = set()

    def edit() -> None:
        removed.add(prompts.pop(rng.randrange(len(prompts))))
        prompts.insert(0, f"new {len(prompts)} {rng.random()}")
        prompts[rng.randrange(len(prompts))] = f"changed {rng.random()}"
        rng.shuffle(prompts)
        write_prompts(input_, [*prompts, {"not": "text"}, 17])

    report = killed_again_and_again(input_, home, 3 * size, 20, 3, between=edit)
    assert report.repeated == 0
    done = prompts_done()
    assert all(done[prompt] >= count for prompt, count in Counter([*map(str, prompts), "17"]).items())
    assert max(Counter(entry["key"] for entry in entries()).values()) == 1


@pytest.mark.parametrize("size", SIZES)
def test_a_torn_last_line(tmp_path: Path, home: Path, size: int) -> None:
    prompts = [f"p{n}" for n in range(40 * size)]
    input_ = write_prompts(tmp_path / "in.jsonl", prompts)
    rng = random.Random(4)

    def tear() -> None:
        ledger = batch_folder("b").ledger
        whole_lines = ledger.read_bytes()
        last = whole_lines.splitlines(keepends=True)[-1:] or [b'{"key": "ab']
        ledger.write_bytes(whole_lines + last[0][: rng.randrange(1, len(last[0]) - 1)])

    report = killed_again_and_again(input_, home, 2 * size, 30, 4, between=tear)
    assert report.repeated == 0
    whole(Counter(prompts))


def test_bat_04_a_batch_that_was_killed_has_the_statistics_of_one_that_was_not(
    tmp_path: Path, home: Path
) -> None:
    prompts = [f"p{n}" for n in range(20)]
    input_ = write_prompts(tmp_path / "in.jsonl", prompts)
    killed_again_and_again(input_, home, 2, 15, 5)
    with WireServer(agent) as server:
        make(input_, server, name="calm")
    first, second = (merge(batch_folder(name), Filters()) for name in ("b", "calm"))
    assert {**first, "name": ""} == {**second, "name": ""}
    assert _merged("b") == _merged("calm")


def _merged(name: str) -> dict[str, Any]:
    """The rows by their keys, without times, and without the ids that the server makes up."""
    found = {}
    for line in batch_folder(name).trajectories.read_text().splitlines():
        row = json.loads(line)
        calls = [call for message in row["messages"] for call in message.get("tool_calls", [])]
        names = {call["id"]: str(number) for number, call in enumerate(calls)}
        text = json.dumps(row)
        for call_id, number in names.items():
            text = text.replace(call_id, number)
        found[row["key"]] = json.loads(text)
    return found


SMALL_DISK = """
import json, sys, threading
from collections import Counter
from pathlib import Path
from rl_cli.core.errors import RlCliError
from tests.data.generation.batches import agent, entries, make, prompts_done, write_prompts
from tests.wire.server import WireServer
home = Path(sys.argv[1])
prompts = [f"p{n}" for n in range(40)]
input_ = write_prompts(home / "in.jsonl", prompts)
fill = home / "fill"
def answer(request):
    if request.number == 30:
        with fill.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
    return agent(request)
with WireServer(answer) as server:
    try:
        ended = make(input_, server, concurrency=4)
        told = [ended.exit_code, ended.reason]
    except RlCliError as error:
        told = [error.exit_code, str(error)]
    done = len(entries())
    begun = {r.body["seed"] for r in server.requests}
    fill.unlink()
    before = len(server.requests)
    again = make(input_, server, concurrency=4)
    asked = {r.body["seed"] for r in server.requests[before:]}
    kept = {entry["row"]["sampling"]["seed"] for entry in entries()[:done]}
    print(json.dumps([told, done, again.exit_code, prompts_done() == Counter(prompts), len(asked & kept)]))
"""


def test_a_disk_that_fills_up_in_the_middle(tmp_path: Path) -> None:
    mounts()
    small = tmp_path / "small"
    small.mkdir()
    shell = 'mount -t tmpfs -o size=3m tmpfs "$1" && export RL_CLI_HOME="$1" && exec "$2" -c "$3" "$1"'
    argv = ["unshare", "-m", "sh", "-c", shell, "sh", str(small), sys.executable, SMALL_DISK]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    told, ended, again, complete, repeated = json.loads(done.stdout.splitlines()[-1])
    assert (told[0], again, complete, repeated) == (1, 0, True, 0), told
    assert "full" in told[1]
    assert 10 < ended < 40
