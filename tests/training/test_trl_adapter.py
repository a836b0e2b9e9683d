"""What TRL does with our rollouts: the same as with its own, whatever happens to some of them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from environments.base import Environment, EnvironmentConfig, Reward, Rollout, Task
from environments.catalogue import load_environment
from rl_cli.config.tree import RunConfig
from rl_cli.training.evaluation import training_batches
from tests.training.steps import GROUP, STEPS, TASKS, Run, config, digest, trl_alone

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """Gives an environment's tiny model after a minute part of its warm start: it answers now and then."""
    from rl_cli.training.models import Loaded, load_tiny
    from rl_cli.training.sft import train_sft
    from rl_cli.training.tiny_model import TinyConfig, build_model, build_tokenizer

    folders: dict[str, Path] = {}

    def load(environment: str) -> Loaded:
        if environment not in folders:
            rows = load_environment(environment).warm_start(0, 640)
            tokenizer = build_tokenizer("".join(segment.text for segment in row) for row in rows)
            model = build_model(TinyConfig(), 0)
            settings = RunConfig.model_validate(
                {
                    "environment": {"name": "x"},
                    "sft": {"steps": 60, "max_steps": 60, "batch_size": 32, "gate": 0.0, "cooldown_steps": 0},
                }
            ).sft
            train_sft(
                model, tokenizer, rows, settings, 0,
                measure=lambda: 1.0, on_figures=lambda step, figures: None, should_stop=lambda: False,
            )  # fmt: skip
            folders[environment] = tmp_path_factory.mktemp(environment)
            model.save_pretrained(folders[environment])
            tokenizer.save_pretrained(folders[environment])
        return load_tiny(folders[environment])

    return load


def test_our_rollouts_train_to_the_same_weights_as_trls_own(start: Any, tmp_path: Path):
    settings = config("gsm8k-mini")
    own = start("gsm8k-mini")
    curve, _ = trl_alone(own, settings, tmp_path / "trl")
    ours = Run(start("gsm8k-mini"), settings, tmp_path / "ours", drop_weightless=False)
    assert sum(curve) > 0
    assert ours.rewards() == pytest.approx(curve, abs=1e-6)
    assert digest(ours.loaded.model) == digest(own.model)


def test_rows_without_weight_are_left_out_without_another_result(start: Any, tmp_path: Path):
    import torch

    settings = config("gsm8k-mini", steps=1)
    every = Run(start("gsm8k-mini"), settings, tmp_path / "every", drop_weightless=False)
    some = Run(start("gsm8k-mini"), settings, tmp_path / "some")
    assert len(some.inputs[0]["completion_ids"]) < len(every.inputs[0]["completion_ids"])
    assert some.figures[0]["loss"] == pytest.approx(every.figures[0]["loss"], abs=1e-7)
    assert some.figures[0]["grad_norm"] == pytest.approx(every.figures[0]["grad_norm"], rel=1e-4)
    for ours, theirs in zip(some.loaded.model.parameters(), every.loaded.model.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=7e-4)  # Adam's first step is lr * sign of the gradient


@pytest.mark.parametrize(
    ("environment", "temperature"),
    [
        ("gsm8k-mini", 0.7),
        ("tool-math", 1.0),
        pytest.param("gsm8k-mini", 1.0, marks=pytest.mark.soak),
        pytest.param("tool-math", 0.7, marks=pytest.mark.soak),
    ],
)
def test_recorded_logprobs_equal_the_trainers(
    start: Any, tmp_path: Path, environment: str, temperature: float
):
    run = Run(
        start(environment), config(environment, temperature=temperature), tmp_path, drop_weightless=False
    )
    assert [figures["logprob/max_diff"] < 1e-4 for figures in run.figures] == [True] * STEPS
    masks = [record.mask for r in run.groups[0] for record in (x.result.tokens for x in r.rollouts)]
    assert any(0 in mask for mask in masks) == (environment == "tool-math")


def test_inserted_tokens_get_no_gradient(start: Any, tmp_path: Path):
    import torch

    loaded = start("tool-math")
    run = Run(loaded, config("tool-math", steps=1), tmp_path, drop_weightless=False)
    inputs = run.inputs[0] | {"advantages": torch.ones(TASKS * GROUP)}
    kept: list[Any] = []
    original = type(run.trainer)._get_per_token_logps_and_entropies

    def keep(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        result[0].retain_grad()
        kept.append(result[0])
        return result

    type(run.trainer)._get_per_token_logps_and_entropies = keep
    loaded.model.train()
    run.trainer.current_gradient_accumulation_steps = 1
    type(run.trainer)._compute_loss(run.trainer, loaded.model, inputs).backward()
    inserted = (inputs["tool_mask"] == 0) & (inputs["completion_mask"] == 1)
    sampled = inputs["tool_mask"] * inputs["completion_mask"] == 1
    assert int(inserted.sum()) > 0
    assert float(kept[0].grad[inserted].abs().max()) == 0.0
    assert float(kept[0].grad[sampled].abs().min()) > 0.0
    masks = [x.result.tokens.mask for group in run.groups[0] for x in group.rollouts]
    assert int(inputs["num_items_in_batch"]) == sum(map(sum, masks))


class Unreliable(Environment):
    """gsm8k-mini whose judge breaks on some rollouts; a reward tells whose rollout it is."""

    name = "unreliable"
    description = "For tests."

    def __init__(self, broken: Callable[[int], bool]) -> None:
        super().__init__(EnvironmentConfig())
        self.mini, self.broken, self.seen = load_environment("gsm8k-mini"), broken, 0
        self.size, self.tasks, self.prompt = self.mini.size, self.mini.tasks, self.mini.prompt

    async def reward(self, task: Task, rollout: Rollout, ctx: Any) -> Reward:
        member = int(ctx.task_id.split("/retry-")[0].rsplit("/", 1)[1])
        if self.broken(member):
            raise RuntimeError("the judge is away")
        return Reward(float(member))


def test_failed_rollouts_keep_every_row_in_its_place(start: Any, tmp_path: Path):
    settings = config("gsm8k-mini", steps=1)
    env = Unreliable(lambda member: member == 1)
    run = Run(start("gsm8k-mini"), settings, tmp_path, env, drop_weightless=False)
    rows, figures = run.trainer.rows, run.figures[0]
    assert rows.rewards == [0.0, None, 2.0, 3.0] * TASKS
    assert (figures["rollouts/errors"], figures["rollouts/errors/reward"]) == (TASKS, TASKS)
    eos = run.loaded.tokenizer.eos_token_id
    for group, place in itertools.product(range(TASKS), range(GROUP)):
        row, rollout = group * GROUP + place, run.groups[0][group].rollouts[place]
        if place == 1:
            assert (rows.completion_ids[row], rows.env_mask[row], rows.logprobs[row]) == ([eos], [0], [0.0])
        else:
            assert rows.completion_ids[row] == rollout.result.tokens.completion_ids
    # TRL shuffles the rows of a step: find each by its tokens, and see its own advantage beside it.
    mean, spread = 5 / 3, (sum((r - 5 / 3) ** 2 for r in (0, 2, 3)) / 2) ** 0.5
    expected = {0.0: (0 - mean) / spread, 2.0: (2 - mean) / spread, 3.0: (3 - mean) / spread}
    inputs = run.inputs[0]
    told = [
        (tuple(ids[mask.bool()].tolist()), round(float(advantage), 2))
        for ids, mask, advantage in zip(
            inputs["completion_ids"], inputs["completion_mask"], inputs["advantages"], strict=True
        )
    ]
    wanted = [
        (tuple(ids), 0.0 if reward is None else round(expected[reward], 2))
        for ids, reward in zip(rows.completion_ids, rows.rewards, strict=True)
    ]
    assert sorted(told) == sorted(wanted)


def test_a_step_without_any_verdict_changes_nothing_and_goes_on(start: Any, tmp_path: Path):
    loaded = start("gsm8k-mini")
    before = digest(loaded.model)
    run = Run(loaded, config("gsm8k-mini", steps=2), tmp_path, Unreliable(lambda member: True))
    assert digest(loaded.model) == before
    assert [figures["loss"] for figures in run.figures] == [0.0, 0.0]
    assert [figures["rollouts/errors"] for figures in run.figures] == [TASKS * GROUP] * 2
    assert [figures["reward/mean"] for figures in run.figures] == [None, None]


def test_one_verdict_in_a_group_is_no_signal(start: Any, tmp_path: Path):
    run = Run(
        start("gsm8k-mini"), config("gsm8k-mini", steps=1), tmp_path, Unreliable(lambda member: member != 2)
    )
    assert run.figures[0]["groups/with_signal"] == 0.0
    assert float(run.inputs[0]["advantages"].abs().max()) == 0.0


def test_batches_of_a_finite_split_hold_no_task_twice_and_cover_it(sums: Path):
    env = load_environment("gsm8k", {"path": str(sums)})
    count = env.size("train")
    batches = training_batches(env, 0, 5)
    first = [task.id for batch in itertools.islice(batches, count // 5) for task in batch]
    assert len(set(first)) == len(first) == count // 5 * 5
    second = [task.id for batch in itertools.islice(batches, count // 5) for task in batch]
    assert second != first
    random.seed(1)
    again = [task.id for batch in itertools.islice(training_batches(env, 0, 5), count // 5) for task in batch]
    assert again == first
