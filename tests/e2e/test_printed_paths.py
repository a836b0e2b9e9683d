"""Whoever sees the path of a file in the output finds it, whole; whoever closes the output finds it too."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from rl_cli.runs.state_file import StateWriter
from rl_cli.runs.store import RunDir, create_run
from tests.e2e.cli import command
from tests.runs.kit import STEP, replay_config

PRINTED = re.compile(r"(?:report|page): (\S+)")


@pytest.fixture
def finished(home: Path) -> list[RunDir]:
    runs = [create_run(replay_config(), home) for _ in range(2)]
    for run in runs:
        for step in range(1, 31):
            run.append_metrics("grpo", step, **STEP)
        StateWriter(run.path).move("finished", "all steps done")
    return runs


@pytest.mark.parametrize("words", [("report",), ("report", "--json"), ("compare", "--html")], ids=" ".join)
def test_a_file_is_there_before_its_path_is_printed(
    finished: list[RunDir], words: tuple[str, ...], tmp_path: Path
) -> None:
    run, other = finished
    verb, *options = words
    if verb == "report":
        argv, files = [run.id, *options], [run.path / "report.html", run.path / "report.md"]
    else:
        argv, files = [run.id, other.id, *options, str(tmp_path / "page.html")], [tmp_path / "page.html"]
    child = subprocess.Popen(
        command("runs", verb, *argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )
    assert child.stdout
    seen = []
    for line in child.stdout:
        if found := PRINTED.search(line):
            path = Path(found[1])
            assert "</html>" in path.read_text() or path.suffix == ".md"
            seen.append(path)
    assert (child.wait(), seen) == (0, files)

    for path in files:
        path.unlink()
    reader, writer = os.pipe()
    os.close(reader)
    subprocess.run(command("runs", verb, *argv), stdout=writer, stderr=subprocess.DEVNULL)
    os.close(writer)
    assert [path.exists() for path in files] == [True] * len(files)
