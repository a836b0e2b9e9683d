"""What the directory of a new run holds, whoever makes it: folders, the config, the first state."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rl_cli.core.files import write_atomic, write_json
from rl_cli.runs.state_file import NO_EVALUATION
from rl_cli.runs.times import now_text

FOLDERS = ("logs", "exit", "ready", "checkpoints")


def write_first_files(
    draft: Path, config: Mapping[str, Any], files: Mapping[str, str] | None = None, **known: Any
) -> None:
    """Fills a folder that is renamed to the run's once it is whole.

    Args:
        draft: The folder; empty.
        config: The config, as run.yaml has it.
        files: More files, name -> text.
        known: Fields of state.json besides those that are the same for every new run.

    Raises:
        OSError: It cannot be written.
    """
    from rl_cli.config.yaml_text import dump_yaml

    for name in FOLDERS:
        (draft / name).mkdir()
    texts = {"run.yaml": dump_yaml(dict(config)), **(files or {})}
    for name, text in texts.items():
        write_atomic(draft / name, text)
    state = {
        "state": "created",
        **dict.fromkeys(("reason", "started", "ended", "profile", "model", "supervisor", "heartbeat")),
        **dict.fromkeys(("phase", "total_steps", "wandb_url", "spending")),
        "created": now_text(),
        "host": socket.gethostname(),
        "environment": config["environment"]["name"],
        "backend": config["backend"]["name"],
        "processes": {},
        "step": 0,
        "eval": NO_EVALUATION,
        "last_metrics": {},
        "alerts": [],
    }
    write_json(draft / "state.json", {**state, **known})
