"""What a link leads out of a run to is never removed nor written, whatever is asked of the run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from rl_cli.core.errors import BadUsage
from rl_cli.runs import checkpoints
from rl_cli.runs.clean import find_leftovers, remove
from rl_cli.runs.containment import is_inside, must_be_its_own
from rl_cli.runs.logs import mask_logs
from rl_cli.runs.reports.report import write_reports
from rl_cli.runs.resuming.resume import resume_run
from rl_cli.runs.retention import to_remove
from rl_cli.runs.state_file import write_into_reserve
from rl_cli.runs.store import RunDir, create_run
from tests.runs.kit import identity, replay_config, start, steps, until, until_over
from tests.runs.test_checkpoints import put

SECRET = "sk-test-AAAABBBBCCCCDDDD"


def over(home: Path) -> RunDir:
    """A run with four checkpoints, of which its config keeps fewer."""
    run = start(home, [steps(2, 0), {"checkpoint": 2}, {"kill": 9}])
    until_over(run)
    until(lambda: not identity(run, "supervisor").alive())
    for step in (3, 4, 5, 6):
        put(run.path, step)
    return run


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def move_out(path: Path, to: Path) -> Path:
    """Moves it out of the run and leaves a link there."""
    shutil.move(path, to)
    path.symlink_to(to)
    return to


@pytest.mark.parametrize("which", ["checkpoints", "checkpoints/step-3", "."])
def test_nothing_foreign_is_cleaned_or_resumed(runs: Path, tmp_path: Path, which: str) -> None:
    run = over(runs)
    assert to_remove(run)
    foreign = move_out(run.path / which if which != "." else run.path, tmp_path / "foreign")
    (foreign / ".writing").mkdir(exist_ok=True)
    before = content_of(foreign)
    found = list(find_leftovers(runs, [run]))
    assert [one for one in found if one.path and not is_inside(run.path, one.path)] == []
    assert remove(runs, found) == []
    checkpoints.sweep(run.path)
    with pytest.raises(BadUsage, match=r"is a link|leads out of the run") as refused:
        resume_run(run)
    assert str(run.path / which) in refused.value.message
    assert content_of(foreign) == before
    assert (foreign / ".writing").is_dir()


def test_what_became_a_link_after_it_was_found_stays(runs: Path, tmp_path: Path) -> None:
    run = over(runs)
    found = list(find_leftovers(runs, [run]))
    assert found
    foreign = move_out(run.path / "checkpoints", tmp_path / "foreign")
    before = content_of(foreign)
    assert "not in the run any more" in remove(runs, found)[0]
    assert content_of(foreign) == before


def test_no_checkpoint_is_put_into_a_foreign_folder(tmp_path: Path) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoints").symlink_to(tmp_path / "foreign")
    (tmp_path / "made").mkdir()
    with pytest.raises(OSError, match="symbolic links"):
        checkpoints.place(tmp_path / "run", 1, tmp_path / "made")
    assert list((tmp_path / "foreign").iterdir()) == []


@pytest.mark.parametrize("name", ["attempts", "attempts/1", "logs", "evaluations", "exit", "wandb"])
@pytest.mark.parametrize("how", ["link", "file"])
def test_a_place_that_is_no_folder_of_the_run_is_named(
    home: Path, tmp_path: Path, name: str, how: str
) -> None:
    run = create_run(replay_config(), home)
    path = run.path / name
    path.parent.mkdir(exist_ok=True)
    if path.is_dir():
        path.rmdir()
    if how == "link":
        path.symlink_to(tmp_path, target_is_directory=True)
    else:
        path.write_text("a person's")
    with pytest.raises(
        BadUsage, match="leads out of the run" if how == "link" else "a folder belongs"
    ) as told:
        must_be_its_own(run.path)
    assert str(path) in told.value.message
    assert str(path) in (told.value.hint or "")


@pytest.mark.parametrize("name", ["metrics.jsonl", "events.jsonl", "logs/trainer.log", "exit/trainer.json"])
def test_a_file_that_leads_out_or_is_a_pipe_is_named(home: Path, tmp_path: Path, name: str) -> None:
    run = create_run(replay_config(), home)
    must_be_its_own(run.path)
    foreign = tmp_path / "foreign"
    foreign.write_text(f"key {SECRET}")
    (run.path / name).unlink(missing_ok=True)
    (run.path / name).symlink_to(foreign)
    with pytest.raises(BadUsage, match="leads out of the run"):
        must_be_its_own(run.path)
    mask_logs(run.path / "logs")
    assert foreign.read_text() == f"key {SECRET}"
    (run.path / name).unlink()
    os.mkfifo(run.path / name)
    with pytest.raises(BadUsage, match="a pipe or a device"):
        must_be_its_own(run.path)
    mask_logs(run.path / "logs")


def test_links_that_stay_in_the_run_and_what_it_does_not_know_are_fine(home: Path, tmp_path: Path) -> None:
    run = create_run(replay_config(), home)
    (run.path / "logs" / "newest.log").symlink_to("trainer.log")
    (run.path / "notes").symlink_to(tmp_path)
    (run.path / "checkpoints" / ".DS_Store").touch()
    (run.path / "wandb").mkdir()
    (run.path / "wandb" / "debug.log").symlink_to(tmp_path / "cache.log")
    must_be_its_own(run.path)


def test_a_reserve_that_leads_out_is_not_written(home: Path, tmp_path: Path) -> None:
    run = create_run(replay_config(), home)
    foreign = tmp_path / "foreign"
    foreign.write_text("a person's")
    (run.path / ".reserve").unlink()
    (run.path / ".reserve").symlink_to(foreign)
    with pytest.raises(OSError, match="symbolic links"):
        write_into_reserve(run.path, "stop.json", {"by": "user"})
    assert foreign.read_text() == "a person's"


def test_a_report_takes_the_place_of_a_link(runs: Path, tmp_path: Path) -> None:
    run = over(runs)
    foreign = tmp_path / "foreign"
    foreign.write_text("a person's")
    for name in ("report.html", "report.md"):
        (run.path / name).unlink(missing_ok=True)
        (run.path / name).symlink_to(foreign)
    for path in write_reports(run):
        assert not path.is_symlink()
        assert run.id in path.read_text()
    assert foreign.read_text() == "a person's"
