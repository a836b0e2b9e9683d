"""The profile single-gpu on a CPU: a random chat model, two steps, the command that trains a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_cli.config.edit import resolve
from rl_cli.runs.store import create_run
from tests.training.conftest import work, work_here

pytestmark = pytest.mark.train

TINY_STEPS = {
    "grpo.steps": 2,
    "grpo.batch_size": 8,
    "grpo.group_size": 4,
    "grpo.micro_batch_size": 4,
    "grpo.max_new_tokens": 8,
    "evaluation.test_tasks": 4,
    "evaluation.validation_tasks": 4,
    "evaluation.every": 1,
}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="all weights, bfloat16", marks=pytest.mark.soak),
        pytest.param({"model.lora": {"rank": 4}}, id="lora"),
        pytest.param({"grpo.kl_beta": 0.1, "model.dtype": "float32"}, id="with a KL penalty"),
    ],
)
def test_two_steps_of_a_chat_model(home: Path, chat_model: Path, sums: Path, changes: dict):
    changes = {"model.name": str(chat_model), "environment.options.path": str(sums)} | TINY_STEPS | changes
    run = create_run(resolve("gsm8k", "single-gpu", changes), home)
    (work if changes.get("grpo.kl_beta") else work_here)(run)
    assert run.exit("trainer")["outcome"] == "finished", run.exit("trainer")["reason"]
    rows = run.metrics()
    assert [row["step"] for row in rows] == [1, 2]
    assert all(row["rollouts/errors"] == 0 for row in rows)
    assert all(row["logprob/max_diff"] < (1e-4 if "model.dtype" in changes else 0.2) for row in rows)
    assert ("kl" in rows[0]) == ("grpo.kl_beta" in changes)
    adapter = (run.path / "checkpoints" / "step-2" / "adapter_model.safetensors").exists()
    assert adapter == ("model.lora" in changes)
    assert [e["which"] for e in run.events() if e["kind"] == "evaluation"] == [
        "initial", "validation", "validation", "final", "best",
    ]  # fmt: skip
