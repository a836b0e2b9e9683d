"""Figures of other trainers under our names."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_cli.runs.metric_names import SOURCES, common_row, resolve

TRL = {
    "train/loss": 0.01,
    "train/reward": 0.5,
    "train/reward_std": 0.4,
    "train/frac_reward_zero_std": 0.25,
    "train/completions/mean_length": 120.0,
    "train/completions/clipped_ratio": 0.1,
    "train/clip_ratio/region_mean": 0.02,
    "train/sampling/sampling_logp_difference/mean": 0.004,
    "train/rewards/format_reward/mean": 0.9,
    "train/step_time": 12.0,
}
PRIME = {
    "reward/all/mean": 0.5,
    "reward/gsm8k/mean": 0.6,
    "loss/mean": 0.01,
    "entropy/mean": 0.3,
    "mismatch_kl/mean": 0.001,
    "optim/grad_norm": 0.2,
    "effective_batch_size/all": 0.7,
    "seq_len/all/mean": 900.0,
    "decode_len/all/mean": 700.0,
    "is_truncated/all/mean": 0.05,
    "time/step": 30.0,
    "eval/aime/avg@16": 0.2,
    "eval/math/avg@1": 0.4,
}
VERL = {
    "critic/rewards/mean": 0.45,
    "critic/score/mean": 0.5,
    "actor/entropy": 0.3,
    "actor/kl_loss": 0.01,
    "actor/ppo_kl": 0.0005,
    "actor/pg_clipfrac": 0.003,
    "actor/pg_loss": 0.01,
    "actor/grad_norm": 0.2,
    "actor/lr": 1e-6,
    "response_length/mean": 700.0,
    "response_length/clip_ratio": 0.05,
    "timing_s/step": 60.0,
    "training/rollout_probs_diff_mean": 0.003,
    "val-core/openai/gsm8k/acc/mean@1": 0.6,
}
TINKER = {
    "env/all/reward/total": 0.5,
    "env/all/correct": 0.6,
    "env/all/format": 0.9,
    "env/all/by_group/frac_mixed": 0.7,
    "env/all/ac_tokens_per_turn": 200.0,
    "optim/entropy": 0.3,
    "optim/kl_sample_train_v1": -0.001,
    "optim/kl_sample_train_v2": 0.002,
    "optim/lr": 1e-4,
    "time/total": 40.0,
    "test/env/all/correct": 0.55,
}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (TRL, {"loss": 0.01, "reward/mean": 0.5, "reward/std": 0.4, "groups/with_signal": 0.75}),
        (TRL, {"completion/mean_tokens": 120.0, "completion/clipped": 0.1, "clip/share": 0.02}),
        (TRL, {"logprob/mean_diff": 0.004, "reward/parts/format_reward": 0.9, "seconds/step": 12.0}),
        (PRIME, {"reward/mean": 0.5, "reward/gsm8k/mean": 0.6, "loss": 0.01, "entropy": 0.3}),
        (PRIME, {"logprob/kl": 0.001, "grad_norm": 0.2, "groups/with_signal": 0.7, "seconds/step": 30.0}),
        (PRIME, {"completion/mean_tokens": 700.0, "seq_len/all/mean": 900.0, "completion/clipped": 0.05}),
        (PRIME, {"accuracy/validation": pytest.approx(0.3)}),
        (VERL, {"reward/mean": 0.5, "critic/rewards/mean": 0.45, "entropy": 0.3, "kl": 0.01}),
        (VERL, {"kl/update": 0.0005, "clip/share": 0.003, "loss": 0.01, "grad_norm": 0.2}),
        (VERL, {"learning_rate": 1e-6, "completion/mean_tokens": 700.0, "completion/clipped": 0.05}),
        (VERL, {"seconds/step": 60.0, "logprob/mean_diff": 0.003}),
        (TINKER, {"reward/mean": 0.5, "reward/parts/correct": 0.6, "groups/with_signal": 0.7}),
        (TINKER, {"logprob/kl": 0.002, "optim/kl_sample_train_v1": -0.001, "entropy": 0.3}),
        (TINKER, {"accuracy/validation": 0.55, "seconds/step": 40.0, "completion/mean_tokens": 200.0}),
    ],
)
def test_figures_of_other_trainers_get_our_names(row: dict[str, float], expected: dict[str, float]) -> None:
    common = common_row({"step": 3, **row})
    assert {name: common.get(name) for name in expected} == expected
    assert common["step"] == 3


names = st.sampled_from([*SOURCES, *(s.name.replace("*", "x") for f in SOURCES.values() for s in f), "mine"])
rows = st.dictionaries(names, st.floats(allow_nan=True, allow_infinity=True), max_size=12)


@given(rows)
def test_mapping_twice_changes_nothing_and_nothing_of_ours_is_replaced(row: dict[str, float]) -> None:
    def same(a: dict[str, float], b: dict[str, float]) -> bool:
        return a.keys() == b.keys() and all(a[k] == b[k] or (a[k] != a[k] and b[k] != b[k]) for k in a)

    common = common_row(row)
    assert same(common_row(common), common)
    assert same(common_row(dict(reversed(row.items()))), common), "the order of figures decides nothing"
    assert all(math.isnan(row[name]) or common[name] == row[name] for name in row if name in SOURCES)
    ranks = {name: known for name in row if (known := resolve(name))}
    for name, (ours, rank, _) in ranks.items():
        best = min(known[1] for known in ranks.values() if known[0] == ours)
        assert (name in common) == (rank > best or rank == -1), "only the best source of a figure is renamed"
