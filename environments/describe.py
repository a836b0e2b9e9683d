"""Child process of catalogue.describe(): `python -P -m environments.describe FD NAME OPTIONS_JSON [FOLDER]`.

Writes one JSON object to the descriptor FD: the description, {"error": {"message", "hint", "exit_code"}},
or {"failed": what the environment's code raised}. What that code prints goes to stderr, also past Python. The
process ends, with all it started, when its standard input does: then whoever asked is gone.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import sys
import threading
import traceback
from typing import Any, get_args

from environments.base import Environment, Split
from environments.catalogue import DESCRIBE_SECONDS, load_environment
from rl_cli.core.errors import RlCliError
from rl_cli.core.own_process import drop_keys, redact_output
from rl_cli.core.processes import TREE, ProcessIdentity, kill_tree
from rl_cli.core.redaction import redact


def main(argv: list[str]) -> int:
    out, name, options = int(argv[0]), argv[1], json.loads(argv[2])
    folder = argv[3] if len(argv) > 3 else None
    os.set_inheritable(out, False)
    _end_with_the_parent()
    os.dup2(2, 1)
    redact_output()
    drop_keys()
    answer: dict[str, Any]
    try:
        answer = description(load_environment(name, options, folder))
        json.dumps(answer)
    except RlCliError as error:
        answer = {"error": {"message": error.message, "hint": error.hint, "exit_code": error.exit_code}}
    except BaseException as error:  # a person's code: whatever it raises is theirs to read, on one line
        answer = {"failed": " ".join(traceback.format_exception_only(error))}
    text = json.dumps(redact(answer))
    with open(out, "w", encoding="ascii") as file:
        file.write(text)
    sys.stderr.flush()
    os._exit(0)  # threads and exit handlers of that code are not waited for


def _end_with_the_parent() -> None:
    """Watches standard input, which the parent holds open, from a thread; the code to come finds it empty."""
    watched = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)

    def watch() -> None:
        os.read(watched, 1)
        me = ProcessIdentity.current()
        mark = os.environ.get(TREE, "").split()[-1:]
        kill_tree(ProcessIdentity(me.pid, me.started, me.host, me.boot, *mark), grace_seconds=0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="parent-watch").start()
    # Code that never lets another thread run is ended by this one, which needs no Python.
    faulthandler.dump_traceback_later(DESCRIBE_SECONDS + 5, exit=True)


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
