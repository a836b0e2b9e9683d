"""The compressor beside bare tokenising of the same rows: `python -P -m tests.bench.compressor`.

Both are processes of their own, from start to end, on all cores, and take turns. The bare one reads the lines
and counts their turns with the same tokenizer, and does nothing else.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.data.compression.kit import long_row, save_tokenizer, write_rows

ROWS = 500
TOKENS = 32_000
CHARS_PER_TOKEN = 3.2
ROUNDS = 3
MOST_ROUNDS = 8
"""Where others use the cores too, few rounds say little."""
CHARS = 1_000_000
"""Of a count of the bare one."""


def bare(tokenizer: str, rows: str) -> None:
    """Counts the tokens of each turn, in batches."""
    from tokenizers import Tokenizer

    fast = Tokenizer.from_file(f"{tokenizer}/tokenizer.json")
    texts: list[str] = []
    size = total = 0
    with open(rows, encoding="utf-8") as lines:
        for line in lines:
            texts += [turn["value"] for turn in json.loads(line)["conversations"]]
            size += len(line)
            if size > CHARS:
                total += sum(len(e) for e in fast.encode_batch_fast(texts, add_special_tokens=False))
                texts, size = [], 0
    total += sum(len(e) for e in fast.encode_batch_fast(texts, add_special_tokens=False))
    print(total)


def compress(tokenizer: str, rows: str, output: str) -> None:
    from rl_cli.cli.main import main

    main(["data", "compress", "--input", rows, "--output", output, "--tokenizer", tokenizer, "--json"])


@dataclass(frozen=True)
class Spent:
    """What a process took."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    output: str


def measured(*words: str) -> Spent:
    """Runs one of the two in a process of its own."""
    with tempfile.TemporaryFile() as out:
        began = time.monotonic()
        environment = os.environ | {"TOKENIZERS_PARALLELISM": "true"}
        argv = [sys.executable, "-P", "-m", "tests.bench.compressor", *words]
        actions = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1)]
        pid = os.posix_spawn(sys.executable, argv, environment, file_actions=actions)
        _, status, used = os.wait4(pid, 0)
        seconds = time.monotonic() - began
        out.seek(0)
        text = out.read().decode()
    assert status == 0, (status, text)
    return Spent(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000, text)


@dataclass(frozen=True)
class Figures:
    rows: int
    tokens: int
    bare: Spent
    ours: Spent
    report: dict[str, Any]

    @property
    def ratio(self) -> float:
        """The compressor's rate, as a share of bare tokenising's."""
        return self.bare.seconds / self.ours.seconds

    @property
    def cpu_ratio(self) -> float:
        """The same of processor time: it hardly depends on what else the machine does."""
        return self.bare.cpu_seconds / self.ours.cpu_seconds

    def __str__(self) -> str:
        return (
            f"compressing {self.rows} rows of {self.tokens / self.rows:,.0f} tokens: {self.ratio:.2f} of the "
            f"rate of bare tokenising ({self.rows / self.ours.seconds:.1f} and "
            f"{self.rows / self.bare.seconds:.1f} rows a second; CPU {self.ours.cpu_seconds:.1f} and "
            f"{self.bare.cpu_seconds:.1f} s), at most {self.ours.peak_mb:.0f} MB (bare "
            f"{self.bare.peak_mb:.0f}), {self.report['over_limit']} rows over the limit"
        )


def _least(rounds: list[Spent]) -> Spent:
    """The least time of all rounds, and the most memory."""
    return Spent(
        min(spent.seconds for spent in rounds),
        min(spent.cpu_seconds for spent in rounds),
        max(spent.peak_mb for spent in rounds),
        rounds[-1].output,
    )


def measure(folder: Path, rows: Path, tokenizer: Path, wanted: float = 0.0) -> Figures:
    """The least that some rounds of each take: of more, as long as the ratio is not the wanted one."""
    count = sum(1 for _ in open(rows, "rb"))  # noqa: SIM115
    ours, theirs = [], []
    for number in range(MOST_ROUNDS):
        theirs.append(measured("bare", str(tokenizer), str(rows)))
        ours.append(measured("compress", str(tokenizer), str(rows), str(folder / f"out-{number}.jsonl")))
        bare_least, least = _least(theirs), _least(ours)
        found = Figures(count, int(bare_least.output), bare_least, least, json.loads(least.output))
        if number + 1 >= ROUNDS and found.ratio >= wanted:
            break
    return found


def make_rows(path: Path, count: int, tokens: int) -> Path:
    rng = random.Random(7)
    chars = int(tokens * CHARS_PER_TOKEN)
    return write_rows(path, (long_row(rng, chars, f"{number:x}-0-0") for number in range(count)))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer = save_tokenizer(folder / "tokenizer", 32_000)
        print(measure(folder, make_rows(folder / "rows.jsonl", ROWS, TOKENS), tokenizer))


if __name__ == "__main__":
    {"bare": bare, "compress": compress}.get(sys.argv[1], main)(*sys.argv[2:]) if sys.argv[1:] else main()
