"""The worker of the trl backend: `python -P -m rl_cli.training.trl_worker RUN_DIR`.

Warm start (tiny model), evaluation, GRPO, evaluation, in one process. It appends to the run's files, looks
for a stop request between steps and phases, and leaves its outcome in exit/trainer.json as the last thing
it does.
"""

from __future__ import annotations

import errno
import shutil
import sys
import traceback
from pathlib import Path

from rl_cli.config.edit import data_problem
from rl_cli.config.tree import RunConfig
from rl_cli.core.cuts import one_line
from rl_cli.core.errors import BadUsage, RlCliError
from rl_cli.core.extras import require_extra
from rl_cli.core.files import explain_os_error
from rl_cli.core.own_process import drop_keys, redact_output
from rl_cli.runs.run_dir import RunDir
from rl_cli.training.process import prepare_process

SPARE_BYTES = 64 * 1024
"""Less free space than this is a full disk."""


def prepare(config: RunConfig) -> RunConfig:
    """Raises BadUsage where packages or the environment's data are missing."""
    require_extra("train")
    if problem := data_problem(config):
        raise BadUsage(f"the data of {config.environment.name} cannot be had: {problem}")
    return config


def main(argv: list[str]) -> int:
    redact_output()
    drop_keys()
    run = RunDir(Path(argv[0]))
    outcome, reason = "failed", ""
    try:
        prepare_process()
        from rl_cli.training.trl_run import train

        outcome, reason = train(run)
    except RlCliError as error:
        reason = str(error)
    except Exception as error:  # whatever it is, the run must say that it failed and why
        traceback.print_exc()
        reason = _explain(error, run)
    code = 0 if outcome in ("finished", "stopped") else 1
    print(f"{outcome}: {reason}", flush=True)
    _leave(run, code, outcome, reason)
    return code


def _explain(error: Exception, run: RunDir) -> str:
    """One line. Libraries that write weights have errors of their own for a disk that is full."""
    full = "No space left" in str(error) or shutil.disk_usage(run.path).free < SPARE_BYTES
    if full:
        error = OSError(errno.ENOSPC, "no space left", str(run.path))
    if isinstance(error, OSError):
        return str(explain_os_error(error))
    return f"{type(error).__name__}: {one_line(str(error), 500)}"


def _leave(run: RunDir, code: int, outcome: str, reason: str) -> None:
    """Writes the exit; on a full disk, the checkpoint that was being written makes room for it."""
    scratch = run.path / "checkpoints" / ".writing"
    try:
        shutil.rmtree(scratch, ignore_errors=True)
        run.write_exit("trainer", code, outcome, reason)
    except OSError as error:
        print(f"the exit could not be written: {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
