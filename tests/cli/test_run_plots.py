from __future__ import annotations

import re
from pathlib import Path

import pytest

from rl_cli.cli.run_plots import print_plots
from rl_cli.cli.wrapping import display_width
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.store import create_run
from tests.e2e.cli import rl_cli
from tests.e2e.terminal import Terminal
from tests.runs.kit import replay_config


def learnt(home: Path, top: float = 0.8, broken: bool = False) -> RunDir:
    run = create_run(replay_config("demo"), home)
    for step in range(1, 41):
        loss = float("nan") if broken and step == 30 else 0.1
        run.append_metrics("grpo", step, loss=loss, entropy=1 / step, **{"reward/mean": top * step / 40})
    return run


@pytest.mark.parametrize("columns", [50, 130])
def test_plots_take_the_width_of_the_terminal(
    home: Path, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_plots([learnt(home, broken=True)])
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert max(map(display_width, told.splitlines())) <= columns
    for part in ("reward, mean: 0.8 at step 40", "loss: 0.1 at step 40", "entropy"):
        assert part in told, part
    assert "✕ 1 of 40 values not finite" in told
    assert "validation" not in told
    assert re.search("[\u2801-\u28ff]", told)
    assert "reward" in told.splitlines()[1]
    assert ("loss" in told.splitlines()[1]) == (columns > 100)


def test_several_runs_are_drawn_over_each_other(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = learnt(home, 0.3), learnt(home, 0.9)
    print_plots([one, other])
    told = capsys.readouterr().out
    assert f"A {one.id}\nB {other.id}\n* where several meet\n" in told
    plot = told.partition("reward, mean")[2].partition("loss")[0]
    assert plot.index("B") < plot.index("A")
    assert "no curves yet" not in told


def test_what_is_not_finite_is_marked_and_counted(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = create_run(replay_config("demo"), home)
    for step in range(1, 41):
        loss = {3: "NaN", 20: "Infinity", 21: -1e300}.get(step, 0.1)
        run.append_metrics("grpo", step, loss=loss, entropy="NaN")
    print_plots([run])
    loss, entropy = capsys.readouterr().out.split("entropy", 1)
    assert loss.count("✕") == 1 + 3
    assert "✕ 3 of 40 values not finite or beyond 1e+100, the first at step 3" in loss
    assert "✕ 40 of 40 values not finite" in entropy
    print_plots([run, learnt(home, broken=True)])
    both = capsys.readouterr().out.partition("loss")[2].partition("entropy")[0]
    assert "✕ 4 of 80 values not finite" in both
    assert both.count("✕") == 1 + 4


def test_runs_that_meet_are_both_seen(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_plots([learnt(home), learnt(home)])
    plot = capsys.readouterr().out.partition("reward, mean")[2].partition("loss")[0]
    assert "*" in plot
    assert not re.search("[AB]", plot)


def test_curves_are_drawn_on_a_terminal_or_when_asked(home: Path) -> None:
    run = learnt(home)
    assert "reward, mean" not in rl_cli("runs", "show", run.id).out
    assert "\x1b" not in rl_cli("runs", "show", run.id, "--plot").out
    with Terminal("runs", "show", run.id, NO_COLOR="1") as shown:
        shown.expect("reward, mean: 0.8 at step 40")
        assert shown.code() == 0
        assert "\x1b[38;5;" not in shown.raw
    with Terminal("runs", "compare", run.id, learnt(home).id) as compared:
        compared.expect("reward, mean")
        assert compared.code() == 0
        assert "\x1b[38;5;" in compared.raw


def test_an_output_without_the_characters_gets_a_line_instead_of_curves(home: Path) -> None:
    told = rl_cli("runs", "show", learnt(home).id, "--plot", PYTHONIOENCODING="latin-1")
    assert (told.code, "\\u2500" in told.out) == (0, False)
    assert "has no characters for them" in told.err
