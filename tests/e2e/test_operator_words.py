"""What the built-in operator is told in words, done by the real tools: resuming, and runs in W&B."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cli import rl_cli
from tests.e2e.terminal import CTRL_C, Terminal
from tests.runs.kit import end_all, start, steps, until_over
from tests.tracking.kit import use
from tests.wandb_server.server import WandbServer
from tests.wandb_server.somebody import curve, plant_run

PLAY = [
    steps(4),
    {"checkpoint": 4},
    steps(2, step_from=5),
    {"crash": "boom"},
    steps(4, step_from=7),
]
LEARNS: Any = {"reward/mean": [0.2, 0.8]}
WATCHED = "wandb:team/rl/abc123"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WandbServer]:
    with WandbServer() as server:
        use(server, monkeypatch, tmp_path)
        yield server


def test_a_run_that_crashed_is_resumed_by_word_after_a_yes(home: Path) -> None:
    try:
        run = start(home, PLAY)
        assert until_over(run)["state"] == "failed"
        assert f"rl-cli runs resume {run.id}" in rl_cli("how is it going?").out
        refused = rl_cli("resume the run")
        assert (refused.code, run.state()["state"]) == (3, "failed"), refused.out + refused.err
        told = rl_cli("resume the run, and tell me when it is done", "--yes")
    finally:
        end_all(home)
    assert told.code == 0, told.out + told.err
    assert "goes on from step 4 (attempt 2)" in told.out + told.err
    assert run.id in told.out
    assert "finished" in told.out
    assert "replay, nothing was trained" in told.out
    assert [row["step"] for row in run.metrics()] == list(range(1, 11))


def test_a_run_that_cannot_be_resumed_is_told_before_anybody_is_asked(home: Path) -> None:
    try:
        until_over(start(home, [steps(4)]))
        told = rl_cli("resume the run")
    finally:
        end_all(home)
    assert told.code == 1, told.out + told.err
    assert "no more to play" in told.out
    assert "--yes" not in told.out


def test_the_sentence_of_the_readme_is_understood_whole(home: Path) -> None:
    """To the end of a run that is going on; the same words after "train" are part of the README's tour."""
    sentence = 'rl-cli "train gsm8k-mini, and tell me when it is done or goes wrong"'
    assert sentence in (Path(__file__).parent.parent.parent / "README.md").read_text("utf-8")
    refused = rl_cli(sentence.split('"')[1])
    assert refused.code == 3  # the question before the start, and nobody to ask
    try:
        run = start(home, [steps(60, every=0.2, **LEARNS)])
        told = rl_cli("tell me when it is done or goes wrong")
        chinese = rl_cli("完成或者出错的时候告诉我")
    finally:
        end_all(home)
    assert f"Run {run.id} (gsm8k-mini) [replay, nothing was trained]: finished" in told.out
    assert told.code == 0
    for said in (refused, told, chinese):
        assert "Not understood" not in said.out + said.err
        assert "做不了" not in said.out


def test_a_run_that_ends_at_the_prompt_is_told_with_its_figures_in_the_language_of_the_chat(
    home: Path,
) -> None:
    tested = {"evaluation": {"which": "initial", "split": "test", "accuracy": 0.2, "n": 400}}
    final = {"evaluation": {"which": "final", "split": "test", "accuracy": 0.8, "n": 400}}
    crash = {"crash": "boom"}
    play = [tested, steps(4), {"checkpoint": 4}, crash, steps(60, step_from=5, every=0.2, **LEARNS), final]
    try:
        run = start(home, play)
        assert until_over(run)["state"] == "failed"
        with Terminal("chat", "--yes") as chat:
            chat.expect("/help")
            chat.say("恢复训练")
            chat.expect("/64  reward")
            chat.type(CTRL_C)
            chat.expect("我不再盯着")
            told = chat.expect("报告：")
            chat.say("/quit")
    finally:
        end_all(home)
    assert f"运行 {run.id}（gsm8k-mini）［回放，没有训练］：已完成" in told
    assert "0.8" in told
    assert "state: finished" not in told


def test_what_failed_in_wandb_does_not_exit_with_0(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    for request in ("list my W&B projects", "watch wandb:me/proj/abc"):
        told = rl_cli(request)
        assert told.code == 1, told.out + told.err
        assert "not affected" not in told.out


def test_somebody_elses_run_is_watched_and_listed_by_word_and_stopped_only_after_a_yes(
    home: Path, server: WandbServer
) -> None:
    over = plant_run(server, curve(12), state="finished")
    going = plant_run(server, curve(8), name="def456")
    told = rl_cli(f"watch {WATCHED}")
    assert told.code == 0, told.out + told.err
    assert "finished" in told.out
    assert "runs resume" not in told.out
    listed = rl_cli("list the W&B runs of team/rl")
    assert "team/rl/abc123 (run abc123): finished" in listed.out
    assert "team/rl/def456 (run def456): running" in listed.out
    compared = rl_cli("compare the W&B runs abc123 and def456 in team/rl")
    assert compared.out.count("team/rl/") >= 2
    refused = rl_cli("stop my W&B run team/rl/def456")
    assert (refused.code, going.stopped) == (3, False)
    assert rl_cli("stop my W&B run team/rl/def456", "--yes").code == 0
    assert (going.stopped, over.stopped) == (True, False)
