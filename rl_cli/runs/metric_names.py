"""One set of names for the figures of any trainer: those of TRL, prime-rl, verl and Tinker become ours.

Where a row has several figures that could stand for one of ours, the first in SOURCES does; the others keep
their own names. A figure that already has our name is never replaced. Names come from the sources and
documentation of the four; `docs/health.md` has the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from rl_cli.runs.curves import AXES, as_number, mean_of


@dataclass(frozen=True)
class Source:
    """Another name for a figure.

    Args:
        name: As it is logged; `*` stands for one part of it, such as an environment's name. Several figures
            that fit are averaged.
        change: From that figure to ours.
    """

    name: str
    change: Callable[[float], float] | None = None


def _rest(share: float) -> float:
    return 1.0 - share


SOURCES: dict[str, tuple[Source, ...]] = {
    "reward/mean": (
        Source("reward"),  # trl
        Source("reward/all/mean"),  # prime-rl
        Source("reward/reward"),  # prime-rl, early
        Source("critic/score/mean"),  # verl: what the reward function gave
        Source("critic/rewards/mean"),  # verl: less the KL penalty
        Source("env/all/reward/total"),  # tinker
        Source("reward/total"),
        Source("reward/*/mean"),  # prime-rl, by environment
        Source("env/*/reward/total"),
    ),
    "reward/std": (Source("reward_std"), Source("reward/all/std")),
    "loss": (Source("loss/mean"), Source("actor/loss"), Source("actor/pg_loss"), Source("policy_loss")),
    "entropy": (
        Source("entropy/mean"),
        Source("entropy/all/mean"),
        Source("actor/entropy"),
        Source("actor/entropy_loss"),  # verl, early: the entropy itself
        Source("optim/entropy"),
    ),
    "kl": (
        Source("actor/kl_loss"),
        Source("actor/reward_kl_penalty"),
        Source("kl_policy_base"),
        Source("teacher_kl/mean"),
    ),
    "kl/update": (Source("actor/ppo_kl"),),
    "grad_norm": (Source("optim/grad_norm"), Source("actor/grad_norm"), Source("grad_norm:mean")),
    "learning_rate": (Source("optim/lr"), Source("actor/lr"), Source("lr")),
    "completion/mean_tokens": (
        Source("completions/mean_length"),
        Source("decode_len/all/mean"),
        Source("completion_len/all/mean"),
        Source("response_length/mean"),
        Source("env/all/ac_tokens_per_turn"),
        Source("ac_tokens_per_turn"),
        Source("seq_len/all/mean"),
        Source("seq_len/mean"),
    ),
    "completion/clipped": (
        Source("completions/clipped_ratio"),
        Source("is_truncated/all/mean"),
        Source("is_truncated/mean"),
        Source("response_length/clip_ratio"),
    ),
    "clip/share": (
        Source("clip_ratio/region_mean"),
        Source("clip_ratio"),
        Source("actor/pg_clipfrac"),
        Source("is_masked/all/mean"),
        Source("is_masked/mean"),
    ),
    "logprob/mean_diff": (
        Source("sampling/sampling_logp_difference/mean"),
        Source("training/rollout_probs_diff_mean"),
    ),
    "logprob/max_diff": (
        Source("sampling/sampling_logp_difference/max"),
        Source("training/rollout_probs_diff_max"),
    ),
    "logprob/kl": (
        Source("mismatch_kl/mean"),
        Source("mismatch_kl/all/mean"),
        Source("rollout_corr/kl"),
        Source("optim/kl_sample_train_v2"),
        Source("kl_sample_train_v2"),
        Source("optim/kl_sample_train_v1", abs),
    ),
    "groups/with_signal": (
        Source("frac_reward_zero_std", _rest),
        Source("effective_batch_size/all"),
        Source("reward/effective_batch_size"),
        Source("env/all/by_group/frac_mixed"),
    ),
    "seconds/step": (
        Source("step_time"),
        Source("time/step"),
        Source("timing_s/step"),
        Source("perf/time_per_step"),
        Source("time/total"),
    ),
    "tokens": (Source("num_tokens"), Source("progress/total_tokens")),
    "accuracy/validation": (
        Source("test/env/all/correct"),
        Source("val-core/*/acc/mean@*"),
        Source("val-core/*/reward/mean@*"),
        Source("val/test_score/*"),
        Source("eval/*/avg@*"),
        Source("eval/*/pass@1"),
        Source("eval/reward"),
        Source("test/env/all/reward/total"),
    ),
    "reward/parts/correct": (Source("env/all/correct"),),
    "reward/parts/format": (Source("env/all/format"),),
}
"""Ours -> theirs, the most exact first."""
PREFIXES = ("train/",)
"""What a logger puts before every name (transformers' W&B callback)."""
FAMILIES = ("rollouts/errors", "reward/parts/")
"""What names of ours begin with that say which one of several."""
PART = re.compile(r"rewards/([^/]+)/mean")
"""TRL: the mean of one reward function of several."""


def common_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of figures under our names; what has none keeps its own.

    Figures of one step that were logged in several rows are to be merged before: which of two sources is the
    better one is decided within a row.
    """
    found: dict[str, tuple[int, list[str], list[float]]] = {}
    for name, ours, rank, change in _renamed(tuple(row)):
        value = as_number(row[name])
        if value is None:
            continue
        best = found.get(ours)
        value = change(value) if change else value
        if best is None or rank < best[0]:
            found[ours] = (rank, [name], [value])
        elif rank == best[0]:
            best[1].append(name)
            best[2].append(value)
    renamed = dict(row)
    for _, names, _ in found.values():
        for name in names:
            del renamed[name]
    for ours, (_, _, values) in found.items():
        renamed[ours] = values[0] if len(values) == 1 else mean_of(values)
    return renamed


def has_our_name(name: str) -> bool:
    """Whether a figure that has gone through `common_row` is one that we know."""
    return name in SOURCES or name.startswith(FAMILIES)


@lru_cache(maxsize=64)
def _renamed(names: tuple[str, ...]) -> list[tuple[str, str, int, Callable[[float], float] | None]]:
    """(name, ours, rank, change) of those names of a row that stand for one of ours that is not in it."""
    known = [(name, found) for name in names if (found := resolve(name))]
    return [(name, *found) for name, found in known if found[0] not in names]


@cache
def resolve(name: str) -> tuple[str, int, Callable[[float], float] | None] | None:
    """(our name, rank among its sources, change) of a figure; None where it has no name of ours."""
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    if name in SOURCES:
        return name, -1, None
    if name in AXES:
        return None
    if part := PART.fullmatch(name):
        return f"reward/parts/{part[1]}", 0, None
    for ours, sources in SOURCES.items():
        for rank, source in enumerate(sources):
            if name == source.name:
                return ours, rank, source.change
    for ours, sources in SOURCES.items():
        for rank, source in enumerate(sources):
            if "*" in source.name and re.fullmatch(_pattern(source.name), name):
                return ours, rank, source.change
    return None


def _pattern(name: str) -> str:
    return "[^/]+".join(re.escape(piece) for piece in name.split("*"))
