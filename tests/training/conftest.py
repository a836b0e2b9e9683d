"""A chat model small enough to load in a moment, a data set of ten sums, and runs of a few steps."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rl_cli.config.edit import resolve
from rl_cli.config.tree import RunConfig
from rl_cli.core.processes import python_module
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.store import create_run

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

SMALL = {
    "sft.steps": 20,
    "sft.rows": 320,
    "sft.batch_size": 16,
    "sft.max_steps": 25,
    "sft.gate": 0.0,
    "sft.cooldown_steps": 5,
    "grpo.steps": 2,
    "grpo.batch_size": 16,
    "grpo.group_size": 4,
    "evaluation.test_tasks": 8,
    "evaluation.validation_tasks": 8,
    "evaluation.every": 1,
}
"""Changes that make a cpu-demo run of seconds; it learns nothing."""


def make_run(home: Path, environment: str = "gsm8k-mini", changes: dict[str, Any] | None = None) -> RunDir:
    config: RunConfig = resolve(environment, "cpu-demo", SMALL | (changes or {}))
    return create_run(config, home)


def work(run: RunDir, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Runs the worker as the supervisor does, to its end."""
    return subprocess.run(
        python_module("rl_cli.training.trl_worker", str(run.path)),
        cwd=run.path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def work_here(run: RunDir) -> int:
    """Runs the worker in this process; what it sets in the environment is undone."""
    from rl_cli.training.trl_worker import main

    before = dict(os.environ)
    try:
        return main([str(run.path)])
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random chat model of some thousand parameters and its tokenizer."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(
        ["What is 2 + 3? #### 5"], trainers.BpeTrainer(initial_alphabet=alphabet, show_progress=False)
    )
    tokenizer.add_special_tokens(
        [AddedToken(t, special=True) for t in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=CHATML
    )
    config = Qwen2Config(
        vocab_size=len(fast),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=512,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
    )
    folder = tmp_path_factory.mktemp("chat-model")
    fast.save_pretrained(folder)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with GSM8K's files and ten sums in each."""
    folder = tmp_path_factory.mktemp("sums")
    for split, start in (("train", 0), ("test", 20)):
        rows = [
            {"question": f"What is {n} + 1?", "answer": f"{n} + 1 = {n + 1}\n#### {n + 1}"}
            for n in range(start, start + 40)
        ]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder
