"""Models that are loaded from checkpoints, and how their turns are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from environments.parsers.base import ParsedCall
from environments.parsers.families import FAMILIES
from rl_cli.config.tree import ModelSection
from rl_cli.training.models import load_checkpoint, make_policy
from tests.environments.tiny import CHAT_TEMPLATE, chat_tokenizer, tiny_llama

pytestmark = pytest.mark.train
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {}}}]


def test_a_checkpoint_is_read_like_the_model_that_was_trained(tmp_path: Path) -> None:
    """Its template shows no form of calls, and its folder is called like another family's model."""
    folder, tokenizer = tmp_path / "step-30", chat_tokenizer()
    tokenizer.chat_template = CHAT_TEMPLATE.replace("tool_call>", "call>")
    tokenizer.save_pretrained(folder)
    tiny_llama(vocabulary=262).save_pretrained(folder)
    written = FAMILIES["qwen3_coder"].render([ParsedCall("add", '{"a": "one"}')])

    loaded = load_checkpoint(folder, ModelSection(name="some/Qwen3-Coder-0.1B"))
    renderer = make_policy(loaded, "run:x").renderer  # type: ignore[attr-defined]
    (call,) = renderer.read(loaded.tokenizer.encode(written, add_special_tokens=False), TOOLS).tool_calls
    assert (call.name, json.loads(call.arguments)) == ("add", {"a": "one"})
