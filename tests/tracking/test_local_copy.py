"""Rows of W&B as rows of metrics.jsonl: one a step, the last value counts, killed and gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rl_cli.core.files import read_jsonl
from rl_cli.runs.progress import Progress, Reader, progress_of
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.watched import watched_run
from rl_cli.tracking.local_copy import OTHER_NAMES, LocalCopy

Row = dict[str, Any]


def rows(*steps: int, start: int = 0, **figures: Any) -> list[Row]:
    return [
        {
            "_step": start + i,
            "_timestamp": 1.7e9 + i,
            "train/global_step": step,
            "reward": step / 100,
            **figures,
        }
        for i, step in enumerate(steps)
    ]


def copied(run: RunDir, *batches: list[Row]) -> LocalCopy:
    copy = LocalCopy(run)
    for batch in batches:
        copy.take(batch)
        copy.close_step(last=False)
    copy.close_step(last=True)
    return copy


def steps_of(run: RunDir) -> list[int]:
    return [row["step"] for row in run.metrics()]


def went_back(run: RunDir) -> list[str]:
    return [event["message"] for event in run.events() if event["kind"] == "resumed"]


def test_rows_of_one_step_become_one_row_with_common_names(home: Path) -> None:
    run = watched_run(home, "wandb:team/rl/one")
    split = [
        {"_step": 0, "train/global_step": 1, "train/reward": 0.5},
        {"_step": 1, "train/global_step": 1, "train/loss": 0.2, "_runtime": 3},
        {"_step": 2, "eval/own": 7, "table": {"_type": "table-file"}},
        {"_step": 3, "train/global_step": 2, "train/reward": "NaN"},
    ]
    copied(run, split[:1], split[1:])
    first, last = run.metrics()[-2:]
    assert (first["step"], first["reward/mean"], first["loss"], first["eval/own"]) == (1, 0.5, 0.2, 7)
    assert (last["step"], last["reward/mean"]) == (2, "NaN")
    assert not {"_runtime", "table"} & first.keys()


def test_ops_12_steps_that_go_backwards_are_gone_on_with_from_there(home: Path) -> None:
    run = watched_run(home, "wandb:team/rl/resumed")
    copied(run, rows(*range(98, 131)), rows(*range(101, 151), start=33))
    assert went_back(run) == ["the run went back from step 130 to 101: continued from a checkpoint"]
    progress = progress_of(run)
    assert progress.step == 150
    assert list(progress.grpo.steps.steps) == list(range(98, 151))


def test_figures_that_come_late_do_not_undo_the_steps_since(home: Path) -> None:
    run = watched_run(home, "wandb:team/rl/late")
    late = [{"_step": 9, "train/global_step": 4, "eval/own": 0.9}]
    copied(run, rows(*range(9)), late, rows(9, start=10))
    assert went_back(run) == []
    assert list(progress_of(run).grpo.steps.steps) == list(range(10))


def test_a_copy_that_was_killed_goes_on_without_doubles(home: Path) -> None:
    run = watched_run(home, "wandb:team/rl/killed")
    copied(run, rows(*range(10)))
    path = run.path / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-30])  # in the middle of a line
    copy = LocalCopy(run)
    assert copy.next_step == 9
    copy.take(rows(9, 10, start=9))
    copy.close_step(last=True)
    assert steps_of(run) == list(range(11))


def test_a_run_with_thousands_of_figures_keeps_the_common_ones(home: Path) -> None:
    run = watched_run(home, "wandb:team/rl/wide")
    wide = {f"layer/{i}": float(i) for i in range(3000)}
    copy = copied(run, [{"_step": 0, **wide, "reward": 0.5, "huge": 10**400}])
    (row,) = run.metrics()
    assert row["reward/mean"] == 0.5
    assert len(row) <= OTHER_NAMES + 10
    assert len(copy.left_out) == 3000 - OTHER_NAMES


def replaced(run: RunDir) -> list[int]:
    return [row["step"] for row in read_jsonl(run.path / "replaced.jsonl")]


def test_a_run_continued_from_a_checkpoint_has_one_row_a_step(home: Path) -> None:
    again = rows(*range(20, 41), start=31, reward=9.0)
    run = watched_run(home, "wandb:team/rl/one-batch")
    copied(run, rows(*range(31)) + again)
    assert steps_of(run) == list(range(41))
    assert run.metrics()[20]["reward/mean"] == 9.0
    assert replaced(run) == list(range(20, 31))
    run = watched_run(home, "wandb:team/rl/two-batches")
    reader, progress = Reader(run), Progress()
    copy = copied(run, rows(*range(31)))
    progress.feed(*reader.read())
    copy.take(again)
    copy.close_step(last=True)
    progress.feed(*reader.read())
    assert steps_of(run) == list(progress.grpo.steps.steps) == list(range(41))
    assert progress.grpo["reward/mean"].at(20) == 9.0
    assert replaced(run) == list(range(20, 31))


def test_a_step_that_grows_after_it_was_written_stays_one_row(home: Path) -> None:
    run = watched_run(home, "wandb:team/rl/grows")
    copied(run, rows(1, 2), [{"_step": 2, "train/global_step": 2, "eval/own": 7}])
    assert steps_of(run) == [1, 2]
    assert (run.metrics()[1]["reward/mean"], run.metrics()[1]["eval/own"]) == (0.02, 7)


def test_rows_that_wandb_no_longer_gives_are_kept(home: Path) -> None:
    run = watched_run(home, "wandb:team/rl/shrinks")
    copy = copied(run, rows(*range(10)))
    copy.restart()
    copy.close_step(last=True)
    assert (copy.next_step, steps_of(run), copy.is_empty) == (0, list(range(10)), False)
    copy.take(rows(0, 1, 2, reward=9.0))
    copy.close_step(last=True)
    assert (copy.next_step, steps_of(run), replaced(run)) == (3, [0, 1, 2], list(range(10)))
    assert run.metrics()[0]["reward/mean"] == 9.0
    assert went_back(run) == []


def test_a_reader_hears_that_a_run_went_back_before_it_gets_the_new_rows(home: Path) -> None:
    run = watched_run(home, "wandb:team/rl/race")
    copy, reader, progress = LocalCopy(run), Reader(run), Progress()
    copy.take(rows(*range(31)))
    copy.close_step(last=True)
    run.append_event("wandb", message="read so far")
    looks = reader.batches()
    progress.feed(*next(looks))
    copy.take(rows(*range(20, 41), start=31, reward=9.0))  # between its reading of the events and of the rows
    copy.close_step(last=True)
    for news in looks:
        progress.feed(*news)
    for news in reader.batches():
        progress.feed(*news)
    assert list(progress.grpo.steps.steps) == list(range(41))
    assert progress.grpo["reward/mean"].best() == (20, 9.0)
