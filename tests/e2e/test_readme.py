"""The README's commands are run in order, in one home, and print what it shows; the first is the main job."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.e2e.cli import installed
from tests.readme_map import END, ROOT, START, render

README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
GAIN = 0.40
TEST_PROBLEMS = 400


def commands() -> list[tuple[str, str]]:
    """(command, the output that is shown) of every console block."""
    parts = [part for block in BLOCKS for part in re.split(r"^\$ ", block, flags=re.MULTILINE) if part]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


def as_pattern(shown: str) -> re.Pattern[str]:
    """What is shown, with every number, duration and run of blanks free; a `…` stands for any text."""
    pattern, duration = "", r"(?:\d+ (?:h|min) )?\d+ (?:min|s)\b"
    for line in shown.splitlines():
        if line == "…":
            pattern += r"(?:.*\n)*?"
            continue
        pieces = re.split(rf"(…|{duration}|-?\d[\d.e-]*|[ ]+)", line)
        free = {"…": r".*", " ": r"[ ]+"}
        pattern += "".join(
            re.escape(piece)
            if i % 2 == 0
            else duration
            if re.fullmatch(duration, piece)
            else free.get(piece[0], r"-?\d?[\d.e-]*(?:[ ]h|[ ]min|[ ]s)*")
            for i, piece in enumerate(pieces)
        )
        pattern += r"[ ]*\n"
    return re.compile(pattern)


@pytest.mark.train
def test_the_tour_prints_what_the_readme_shows(home: Path):
    (home.parent / "examples").symlink_to(ROOT / "examples")
    seen = commands()
    assert seen[0][0] == 'rl-cli "train a GSM8K model" --yes'
    for command, shown in seen:
        told = installed(*shlex.split(command)[1:], cwd=home.parent)
        printed = told.out + told.err
        assert as_pattern(shown).search(printed), f"$ {command}\nshown:\n{shown}\nprinted:\n{printed}"
        if command == seen[0][0]:
            assert told.code == 0
    [trained] = [row for row in installed("runs", "list", "--json").rows() if row["backend"] == "trl"]
    evaluation = trained["eval"]
    assert evaluation["n"] >= TEST_PROBLEMS
    assert evaluation["final"] - evaluation["initial"] >= GAIN


def test_the_map_of_the_tree_is_up_to_date():
    shown = README.partition(START)[2].partition(END)[0]
    assert shown == render(), "run: python -m tests.readme_map"
