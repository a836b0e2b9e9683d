"""What decides the warm start of a tiny model, as far as a config says it, before anything is loaded."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl_cli.core.files import read_json

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig

FOLDER = "warm_starts"
"""In RL_CLI_HOME; one folder for each warm start, with its `causes` in warm_start.json."""
STARTING = "starting checkpoint"
"""The model that GRPO would start from: the warm-started tiny model, or the pretrained one of the config."""


def settled_by(config: RunConfig) -> dict[str, Any]:
    """What decides a warm start, but for the worked solutions, which only the environment's code can tell."""
    return {
        "environment": config.environment.name,
        "options": config.environment.options,
        "model": config.model.model_dump(),
        "sft": config.sft.model_dump(),
        "rollout": config.grpo.model_dump(include={"max_new_tokens", "max_turns"}),
        "seed": config.seed,
        "version": version("rl-flywheel"),
    }


def must_be_built(config: RunConfig, home: str | Path) -> bool:
    """Whether a run of this config, or a test of its starting checkpoint, trains the warm start first.

    Runs no code of the environment: one that has changed meanwhile is not noticed.
    """
    if config.backend.name != "trl" or config.model.name != "tiny" or not config.sft.steps:
        return False
    wanted = json.loads(json.dumps(settled_by(config)))
    for path in (Path(home) / FOLDER).glob("[!.]*/warm_start.json"):
        try:
            known = read_json(path)["causes"]
            if all(known[name] == value for name, value in wanted.items()):
                return False
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return True
