"""Child process of catalogue.describe(): `python -P -m environments.describe NAME OPTIONS_JSON [FOLDER]`.

Writes one JSON object to stdout: the description, or {"error": {"message", "hint", "exit_code"}}. What the
environment's own code prints goes to stderr.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
from typing import Any, get_args

from environments.base import Environment, Split
from environments.catalogue import load_environment
from rl_cli.core.errors import RlCliError


def main(argv: list[str]) -> int:
    name, options, folder = argv[0], json.loads(argv[1]), argv[2] if len(argv) > 2 else None
    answer: dict[str, Any]
    with contextlib.redirect_stdout(sys.stderr):
        try:
            answer = description(load_environment(name, options, folder))
        except RlCliError as error:
            answer = {"error": {"message": error.message, "hint": error.hint, "exit_code": error.exit_code}}
    print(json.dumps(answer, ensure_ascii=True))
    return 0


def description(env: Environment) -> dict[str, Any]:
    """The answer of catalogue.describe() for an environment that is loaded."""
    answer: dict[str, Any] = {
        "name": env.name,
        "description": env.description,
        "profiles": list(env.profiles),
        "stand_in": env.stand_in,
        "sizes": None,
        "options_schema": env.Config.model_json_schema(),
        "toolsets": list(env.toolsets(random.Random(0))),
        "reward": " ".join((type(env).reward.__doc__ or "").split()),
        "example": None,
        "has_warm_start": False,
        "problem": None,
    }
    try:
        answer["sizes"] = {split: env.size(split) for split in get_args(Split)}
        if task := next(iter(env.tasks("train", 0)), None):
            answer["example"] = {"task_id": task.id, "messages": env.prompt(task)}
        answer["has_warm_start"] = env.warm_start(0, 1) is not None
    except RlCliError as error:  # its data cannot be had here; the rest is worth knowing all the same
        answer["sizes"], answer["problem"] = None, str(error)
    return answer


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
