"""The ledger: kills at any byte, full disks, readers beside the writer."""

from __future__ import annotations

import asyncio
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_cli.core.json_text import row_json
from rl_cli.data.batch.entries import Damage, Entry, read_entries
from rl_cli.data.batch.ledger import Ledger
from rl_cli.data.batch.outcomes import final_entries
from rl_cli.data.batch.summary import summary
from tests.components import mounts
from tests.data.batch.kit import append, begun, done, failed, write_input
from tests.readme_map import ROOT

HASHES = [f"{number:032x}" for number in range(4)]
KEYS = st.builds("{}-{}-{}".format, st.sampled_from(HASHES), st.integers(0, 2), st.integers(0, 3))
ENTRIES = st.lists(
    st.builds(
        lambda key, good, text: done(key, text=text) if good else failed(key), KEYS, st.booleans(), st.text()
    ),
    max_size=12,
)


def bytes_of(entries: list[Entry]) -> list[bytes]:
    return [row_json({**entry}) + b"\n" for entry in entries]


def keys_of(path: Path) -> list[str]:
    damage = Damage()
    keys = [entry["key"] for _, entry in read_entries(path, damage)]
    assert damage == Damage()
    return keys


@settings(max_examples=40)
@given(ENTRIES, st.data())
def test_bat_11_a_kill_at_any_byte_loses_no_whole_line(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry], data: st.DataObject
):
    path = tmp_path_factory.mktemp("cut") / "ledger.jsonl"
    whole = bytes_of(entries)
    cut = data.draw(st.integers(0, len(b"".join(whole))))
    path.write_bytes(b"".join(whole)[:cut])
    before = [entry["key"] for _, entry in read_entries(path, Damage())]
    ledger = Ledger(path)
    kept = keys_of(path)
    lengths = [len(b"".join(whole[:count])) for count in range(len(whole) + 1)]
    complete = sum(length <= cut + 1 for length in lengths[1:])  # the end of a line alone is made good
    assert kept == [entry["key"] for entry in entries[:complete]]
    assert before == kept[: len(before)]
    assert (ledger.repaired is None) == (cut in lengths)
    asyncio.run(ledger.append(done(f"{HASHES[0]}-9-9")))
    ledger.close()
    assert keys_of(path) == [*kept, f"{HASHES[0]}-9-9"]


@settings(max_examples=40)
@given(ENTRIES)
def test_every_sample_counts_once_whatever_the_order(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry]
):
    path = tmp_path_factory.mktemp("order") / "ledger.jsonl"
    path.write_bytes(b"".join(bytes_of(entries)))
    first_done: dict[str, Entry] = {}
    last: dict[str, Entry] = {}
    for entry in entries:
        last[entry["key"]] = entry
        if entry["state"] == "done":
            first_done.setdefault(entry["key"], entry)
    outcomes = list(final_entries(path, Damage()))
    found = {entry["key"]: entry for entry in outcomes}
    assert len(found) == len(outcomes)
    assert found == last | first_done
    ledger = Ledger(path)
    ledger.close()
    assert ledger.index.counts() == (len(first_done), len(last) - len(first_done))
    for key, entry in found.items():
        item, sample = key.rsplit("-", 1)
        ended = ledger.index.of(item)
        assert ended.has(int(sample))
        assert ended.is_done(int(sample)) == (entry["state"] == "done")


UNREADABLE: list[dict[str, Any]] = [
    {"usage": {"requests": -5}},
    {"usage": {"input_tokens": None}},
    {"reasoning": {"turns": "x"}},
    {"tool_stats": {"terminal": 1}},
    {"tool_stats": {"terminal": {"count": "x"}}},
    {"tools": [{"type": "function"}]},
    {"marks": [{}]},
    {"cost_usd": float("nan")},
    {"cost_usd": 1e308},
    {"score": "high"},
]
"""Fields of which a merge cannot make figures."""


def line_with(**fields: Any) -> bytes:
    return bytes_of([done(f"{HASHES[0]}-0-0", **fields)])[0].rstrip(b"\n")


@pytest.mark.parametrize(
    "line",
    [
        b"\x00" * 40,
        b"not json",
        b"[]",
        b'{"key": "x-0-0", "state": "done"}',
        b'{"key": "%s-0-0", "state": "asked", "row": null}' % HASHES[0].encode(),
        b'{"key": "%s-0-0", "state": "done", "row": null}' % HASHES[0].encode(),
        b'{"key": "%s-0-0", "state": "failed", "row": 7}' % HASHES[0].encode(),
        b'{"key": "%s-0-0", "state": "done", "row": {"marks": 5}}' % HASHES[0].encode(),
        *(line_with(**field) for field in UNREADABLE),
    ],
)
def test_bat_11_a_damaged_line_hides_no_other(tmp_path: Path, line: bytes):
    path = tmp_path / "ledger.jsonl"
    first, last = bytes_of([done(f"{HASHES[1]}-0-0"), done(f"{HASHES[2]}-0-0")])
    path.write_bytes(first + line + b"\n" + last)
    ledger = Ledger(path)
    ledger.close()
    assert (ledger.damaged, ledger.index.counts()) == (1, (2, 0))


def test_entries_that_wait_together_are_written_together_and_none_is_lost_to_a_cancelled_caller(
    tmp_path: Path,
):
    keys = [f"{HASHES[0]}-{number}-0" for number in range(300)]

    async def write() -> None:
        ledger = Ledger(tmp_path / "ledger.jsonl")
        tasks = [asyncio.create_task(ledger.append(done(key))) for key in keys]
        await tasks[0]
        assert ledger.index.is_done(keys[0])
        for task in tasks[200:]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for first in range(0, 350, 7):
            some = (failed(f"{HASHES[2]}-{number}-0") for number in range(first, first + 7))
            await asyncio.gather(*(ledger.append(entry) for entry in some))
        unheard = asyncio.create_task(ledger.append(done(f"{HASHES[1]}-0-0")))
        await asyncio.sleep(0)
        unheard.cancel()
        ledger.close()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    asyncio.run(write())
    sys.setswitchinterval(interval)
    more = [f"{HASHES[2]}-{number}-0" for number in range(350)]
    assert sorted(keys_of(tmp_path / "ledger.jsonl")) == sorted([*keys, *more, f"{HASHES[1]}-0-0"])
    assert not (tmp_path / ".reserve").exists()


WRITER = """
import asyncio, sys
from pathlib import Path
from rl_cli.data.batch.ledger import Ledger
from tests.data.batch.kit import done
path, first, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
async def one(ledger, number):
    key = f"{number:032x}-0-0"
    await ledger.append(done(key, text="x" * (number * 7919 % size)))
    print(key, flush=True)
async def main():
    ledger = Ledger(path)
    print("open", ledger.repaired, flush=True)
    for group in range(first, first + 4000, 4):
        await asyncio.gather(*(one(ledger, group + n) for n in range(4)))
asyncio.run(main())
"""


def killed_writers(path: Path, kills: int, size: int, seed: int) -> None:
    chance = random.Random(seed)
    told: list[str] = []
    for kill in range(kills):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(kill * 10_000), str(size)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        ) as writer:
            assert writer.stdout
            assert writer.stdout.readline().startswith("open")
            for _ in range(chance.randrange(1, 40)):
                told.append(writer.stdout.readline().strip())
            time.sleep(chance.random() * 0.01)
            writer.send_signal(signal.SIGKILL)
            told += writer.stdout.read().split("\n")[:-1]
    ledger = Ledger(path)
    ledger.close()
    assert set(told) <= set(keys_of(path))
    assert len(keys_of(path)) == len(set(keys_of(path)))


def test_killed_writers_have_written_what_they_told(tmp_path: Path):
    killed_writers(tmp_path / "ledger.jsonl", kills=2, size=300_000, seed=1)


@pytest.mark.soak
def test_many_killed_writers_have_written_what_they_told(tmp_path: Path):
    killed_writers(tmp_path / "ledger.jsonl", kills=30, size=2_000_000, seed=2)


FULL = """
import asyncio, sys
from pathlib import Path
from rl_cli.core.errors import WorkFailed
from rl_cli.data.batch.entries import Damage, read_entries
from rl_cli.data.batch.ledger import Ledger
from tests.data.batch.kit import done
folder = Path(sys.argv[1])
def fill():
    with (folder / "fill").open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
def keys():
    damage = Damage()
    found = [entry["key"] for _, entry in read_entries(folder / "ledger.jsonl", damage)]
    assert damage == Damage()
    return found
async def main():
    ledger = Ledger(folder / "ledger.jsonl", in_flight=4)
    await ledger.append(done(f"{1:032x}-0-0"))
    fill()
    sizes = [20_000, 30_000, 40_000, 50_000]
    await asyncio.gather(*(ledger.append(done(f"{n:032x}-0-0", text="x" * n)) for n in sizes))
    print(ledger.full, len(keys()))
    fill()
    answers = await asyncio.gather(
        ledger.append(done(f"{2:032x}-0-0", text="x" * 500_000)),
        ledger.append(done(f"{3:032x}-0-0")),
        return_exceptions=True,
    )
    print(*answers, sep="\\n")
    print(len(keys()) - answers.count(None))
    (folder / "fill").unlink()
    await ledger.append(done(f"{4:032x}-0-0"))
    ledger.close()
    again = Ledger(folder / "ledger.jsonl")
    print(again.repaired, again.index.is_done(f"{4:032x}-0-0"))
    again.close()
    fill()
    try:
        Ledger(folder / "ledger.jsonl")
    except WorkFailed as error:
        print(error)
asyncio.run(main())
"""


def test_a_full_disk_takes_what_is_in_flight_and_then_says_so(tmp_path: Path):
    mounts()
    small = tmp_path / "small"
    small.mkdir()
    shell = 'mount -t tmpfs -o size=1m tmpfs "$1" && exec "$2" -c "$3" "$1"'
    argv = ["unshare", "-m", "sh", "-c", shell, "sh", str(small), sys.executable, FULL]
    ended = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    full = f"the disk is full: cannot write {small}/ledger.jsonl (free some space and try again)"
    first, *answers, kept, again, refused = ended.stdout.splitlines()
    assert (first, kept, again) == ("True 5", "5", "None True")
    assert answers[0] == refused == full
    assert answers[1] in ("None", full)  # the small one may find the rest of a block


LIMITED = """
import asyncio, sys
from pathlib import Path
from rl_cli.data.batch.ledger import Ledger
from tests.data.batch.kit import done
async def main():
    ledger = Ledger(Path(sys.argv[1]), in_flight=1)
    number = 0
    while True:
        await ledger.append(done(f"{number:032x}-0-0", text="x" * 10_000))
        number += 1
        print(number, flush=True)
asyncio.run(main())
"""


def test_a_limit_of_size_leaves_whole_lines(tmp_path: Path):
    path = tmp_path / "ledger.jsonl"
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)),
        check=False,
    )
    assert f"WorkFailed: {path}: File too large" in ended.stderr
    assert len(keys_of(path)) == len(ended.stdout.splitlines()) > 10


def read_while_written(tmp_path: Path, rows: int, size: int) -> None:
    folder, _ = begun(write_input(tmp_path / "in.jsonl", ["a"]))
    script = WRITER.replace("first + 4000", f"first + {rows}").replace("number * 7919 % size", "size")
    with subprocess.Popen(
        [sys.executable, "-c", script, str(folder.ledger), "0", str(size)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
    ) as writer:
        seen = [0]
        while writer.poll() is None:
            found = summary(folder)
            assert found["damage"]["lines"] == 0
            seen.append(found["done"])
    assert seen == sorted(seen)
    assert summary(folder)["done"] == rows


def test_bat_12_statistics_while_large_rows_are_written(tmp_path: Path, home: Path):
    read_while_written(tmp_path, rows=40, size=200_000)


@pytest.mark.soak
def test_bat_12_statistics_while_two_hundred_rows_of_a_megabyte_are_written(tmp_path: Path, home: Path):
    read_while_written(tmp_path, rows=200, size=1_000_000)


def test_bat_11_the_summary_of_a_batch_with_a_torn_line(tmp_path: Path, home: Path):
    folder, _ = begun(write_input(tmp_path / "in.jsonl", ["a"]))
    append(folder, [done(f"{number:032x}-0-0") for number in range(7)])
    with folder.ledger.open("ab") as file:
        file.write(b'{"key": "' + b"0" * 20)
    found: dict[str, Any] = summary(folder)
    assert (found["done"], found["damage"]) == (7, {"lines": 0, "unfinished": 29})
