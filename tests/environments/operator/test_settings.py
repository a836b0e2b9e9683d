"""Which config fields and values a request sets."""

from __future__ import annotations

import pytest

from environments.policies.operator.settings import read_settings, unread
from environments.policies.operator.wording import normalise
from rl_cli.config.tree import RunConfig

TABLE: list[tuple[str, dict[str, object]]] = [
    (
        "train gsm8k-mini for 60 steps with lr 2e-4, groups of 16, seed 3",
        {"grpo.steps": 60, "grpo.learning_rate": 2e-4, "grpo.group_size": 16, "seed": 3},
    ),
    (
        "用 gsm8k-mini 训练 60 步，学习率 2e-4，每组 16 个，种子 3",
        {"grpo.steps": 60, "grpo.learning_rate": 2e-4, "grpo.group_size": 16, "seed": 3},
    ),
    (
        "训练 ６０ 步，学习率２ｅ－４，每组１６个",
        {"grpo.steps": 60, "grpo.learning_rate": 2e-4, "grpo.group_size": 16},
    ),
    ("训练六十步，每组十六个，种子三", {"grpo.steps": 60, "grpo.group_size": 16, "seed": 3}),
    ("train for sixty steps in groups of sixteen", {"grpo.steps": 60, "grpo.group_size": 16}),
    ("a hundred and twenty steps", {"grpo.steps": 120}),
    ("训练一个 GSM8K 模型", {}),
    ("1,000 steps", {"grpo.steps": 1000}),
    ("1k steps", {"grpo.steps": 1000}),
    ("lr=2e-4,500 steps", {"grpo.learning_rate": 2e-4, "grpo.steps": 500}),
    ("lr 2×10⁻⁴", {"grpo.learning_rate": 2e-4}),
    ("learning rate of 2*10^-4", {"grpo.learning_rate": 2e-4}),
    ("lr 0.0002.", {"grpo.learning_rate": 2e-4}),
    ("-5 steps", {"grpo.steps": -5}),
    ("2.5 steps", {"grpo.steps": 2.5}),
    ("until 90%", {"health.target_accuracy": 0.9}),
    ("until it reaches 90 % accuracy", {"health.target_accuracy": 0.9}),
    ("to 0.9 accuracy", {"health.target_accuracy": 0.9}),
    ("max accuracy 0.95", {"health.target_accuracy": 0.95}),
    ("target accuracy of 85", {"health.target_accuracy": 0.85}),
    ("直到准确率达到９０％", {"health.target_accuracy": 0.9}),
    ("batch size 128, 16 rollouts per task", {"grpo.batch_size": 128, "grpo.group_size": 16}),
    ("批大小 128，每题 8 个回答", {"grpo.batch_size": 128, "grpo.group_size": 8}),
    ("with Qwen/Qwen3-0.6B", {"model.name": "Qwen/Qwen3-0.6B"}),
    ("model=./my_model", {"model.name": "./my_model"}),
    ("with the tiny model", {"model.name": "tiny"}),
    ("from data/gsm8k.jsonl", {"environment.options.path": "data/gsm8k.jsonl"}),
    ("grpo.kl_beta=0.01 grpo.steps=3", {"grpo.kl_beta": 0.01, "grpo.steps": 3}),
    ("health.target_accuracy = null", {"health.target_accuracy": None}),
    ("validate every 5 steps for 50 steps", {"evaluation.every": 5, "grpo.steps": 50}),
    ("每 10 步评估一次，训练 50 步", {"evaluation.every": 10, "grpo.steps": 50}),
    ("check every 10 minutes", {"health.check_every_seconds": 600}),
    ("for 2 hours", {"budget.max_hours": 2}),
    ("最多 30 分钟", {"budget.max_hours": 0.5}),
    ("without wandb and no warm start", {"tracking.wandb": "off", "sft.steps": 0}),
    ("不用 wandb", {"tracking.wandb": "off"}),
    ("temperature 0.7, 20 new tokens", {"grpo.temperature": 0.7, "grpo.max_new_tokens": 20}),
    ("on 800 test problems", {"evaluation.test_tasks": 800}),
]


@pytest.mark.parametrize(("phrase", "changes"), TABLE, ids=[phrase for phrase, _ in TABLE])
def test_settings_of_a_phrase(phrase: str, changes: dict[str, object]) -> None:
    settings, rest = read_settings(normalise(phrase))
    assert settings.changes == changes
    assert not settings.problems
    assert not unread(rest)


def test_every_field_exists_in_the_config() -> None:
    """The names are the config's own: a field renamed there must be renamed here."""
    for _, changes in TABLE:
        for name in changes:
            model: object = RunConfig
            for part in name.split("."):
                if part == "options":
                    break
                model = model.model_fields[part].annotation  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("phrase", "profile"),
    [
        ("with the cpu-demo profile", "cpu-demo"),
        ("profile single-gpu", "single-gpu"),
        ("单 single-gpu profile", "single-gpu"),
    ],
)
def test_profile(phrase: str, profile: str) -> None:
    assert read_settings(normalise(phrase))[0].profile == profile


@pytest.mark.parametrize("phrase", ["32 tasks per step", "每步 32 道题", "batches of 32 tasks"])
def test_tasks_per_step(phrase: str) -> None:
    settings, _ = read_settings(normalise(phrase))
    assert (settings.tasks_per_step, settings.changes) == (32, {})


@pytest.mark.parametrize(
    "phrase",
    [
        "lr fast",
        "a few steps",
        "every 10 steps",
        "seeds 1, 2 and 3",
        "3 epochs",
        "lr 2/3",
        "qwen3-0.6b",
        "训练几步",
        "below 50%",
    ],
)
def test_what_cannot_be_read_is_said_and_not_guessed(phrase: str) -> None:
    settings, rest = read_settings(normalise(phrase))
    assert settings.changes == {}
    assert unread(rest)


def test_two_values_for_one_setting_are_a_conflict() -> None:
    settings, _ = read_settings("60 steps, no, 40 steps")
    assert [problem.kind for problem in settings.problems] == ["conflict"]
