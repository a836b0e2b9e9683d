"""The report's figures: accuracies with what chance allows, and the curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rl_cli.runs.outcome import (
    WHICH,
    evaluated,
    gain,
    gain_interval,
    interval,
    is_replay,
    rounded,
    signed,
    signed_gain,
)
from rl_cli.runs.progress import Progress
from rl_cli.runs.reports.page import Block, Cell, Chart, Charts, Table, Text
from rl_cli.runs.reports.paired import answers, compare_answers
from rl_cli.runs.run_dir import RunDir

CURVES = (
    ("Reward, mean", "reward/mean"),
    ("Groups with signal, share", "groups/with_signal"),
    ("Entropy, nats per token", "entropy"),
    ("GRPO loss", "loss"),
    ("Gradient norm", "grad_norm"),
    ("Completion length, tokens", "completion/mean_tokens"),
    ("Completions cut off, share", "completion/clipped"),
    ("KL to the start, per token", "kl"),
    ("Reward, standard deviation", "reward/std"),
    ("Clipped updates, share", "clip/share"),
    ("Logprob difference to the sampler, mean", "logprob/mean_diff"),
    ("Logprob difference to the sampler, largest", "logprob/max_diff"),
    ("Rollouts that failed", "rollouts/errors"),
    ("Seconds per step", "seconds/step"),
)
ALWAYS = ("reward/mean",)
WHEN_NOT_ZERO = ("rollouts/errors", "kl", "clip/share")
DIGITS = 4
"""Of an accuracy, after the point: one problem of 400 is 0.0025."""
MEANING = {
    "untrained": "the model before any training",
    "initial": "where GRPO started",
    "best": "the checkpoint chosen on validation",
    "final": "where GRPO ended",
}


def evaluations(run: RunDir, summary: dict[str, Any], events: Sequence[dict[str, Any]]) -> list[Block]:
    """Accuracies on the test split with their intervals, the gain, and the paired test."""
    evaluation, replay = summary["eval"], is_replay(summary)
    rows: list[list[Cell | str]] = []
    for which in WHICH:
        value, n = evaluation[which], evaluation["n"]
        if value is None:
            continue
        low, high = interval(value, n) if n and not replay else (None, None)
        first = evaluation["initial"] if which in ("best", "final") and not replay else None
        step = evaluated(events, which)[0] if which in ("best", "final") else None
        at = "" if step is None else f", step {step}"
        known = "" if low is None or high is None else f"{rounded(low, DIGITS)} to {rounded(high, DIGITS)}"
        above = "" if first is None else signed_gain(first, value, DIGITS)
        rows.append([Cell(f"{which},", f"{MEANING[which]}{at}"), rounded(value, DIGITS), known, above])
    if not rows:
        return [Text("nothing was evaluated", "about")]
    table = Table(("", "accuracy", "95 % interval", "gain over initial"), rows, 3, "scores")
    if replay:
        return [table, Text("Figures of the file that was played; nothing was measured.", "about")]
    about = f"{evaluation['n']} test problems, answered greedily. Intervals of accuracies are Wilson's."
    return [table, Text(about, "about"), *_gain(run, evaluation)]


def _gain(run: RunDir, evaluation: dict[str, Any]) -> list[Block]:
    change, n = gain(evaluation), evaluation["n"]
    if change is None:
        return []
    added = f"GRPO added {signed_gain(evaluation['initial'], evaluation['final'], DIGITS)}."
    tested = compare_answers(answers(run, "initial"), answers(run, "final"))
    if not isinstance(tested, str):
        chance = "That is chance in the problems; how much seeds differ among themselves is not in it."
        return [Text(f"{added} {tested.sentence()}"), Text(chance, "about")]
    if not n:
        return [Text(added)]
    low, high = gain_interval(evaluation["initial"], evaluation["final"], n)
    return [
        Text(
            f"{added[:-1]}, 95 % interval {signed(low, DIGITS)} to {signed(high, DIGITS)} (Newcombe's, as if "
            "the two were independent; chance in the problems, not between seeds)."
        ),
        Text(f"No paired test of initial and final: {tested}.", "about"),
    ]


def charts(progress: Progress, evaluation: dict[str, Any]) -> list[Block]:
    """What the run has curves of; all begin at step 0."""
    grpo, initial = progress.grpo, evaluation["initial"]
    found = []
    for title, name in CURVES:
        curve = grpo[name]
        shown = len(curve) and (name not in WHEN_NOT_ZERO or any(curve.values))
        if shown or name in ALWAYS:
            bounds = (0.0, 1.0) if title.endswith("share") else None
            found.append(Chart(title, [("", curve)], bounds=bounds))
    if len(progress.validations):
        known = ("initial (test)", initial)
        found.insert(
            1,
            Chart(
                "Validation accuracy",
                [("", progress.validations)],
                dots=len(progress.validations) <= 60,
                levels=[known] if initial is not None else [],
                start=known if initial is not None else None,
                bounds=(0.0, 1.0),
            ),
        )
    if len(progress.sft):
        found.append(Chart("SFT loss", [("", progress.sft["loss"])]))
    return [Charts(found)]
