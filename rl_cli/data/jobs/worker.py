"""The process of detached work: `python -P -m rl_cli.data.jobs.worker FOLDER KIND`; `launch` starts it."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rl_cli.core.errors import RlCliError
from rl_cli.core.files import read_json
from rl_cli.core.own_process import redact_output
from rl_cli.data.batch.folder import BatchFolder
from rl_cli.data.jobs.compressing import compress_batch
from rl_cli.data.jobs.generating import generate_batch
from rl_cli.data.jobs.job import Job, Kind

End = tuple[str, str | None, int]
"""State, reason, exit code."""
WORK: dict[str, Callable[[BatchFolder, dict[str, Any], Callable[[], None]], End]] = {
    "generate": generate_batch,
    "compress": compress_batch,
}


def main(folder: str, kind: Kind) -> int:
    """Does the work that the order beside the job's state tells; returns its exit code."""
    redact_output()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    job = Job(BatchFolder(Path(folder)), kind)
    job.tell("starting")
    try:
        state, reason, code = WORK[kind](job.folder, read_json(job.order), lambda: job.tell("running"))
        job.end(state, reason, code)
        return code
    except KeyboardInterrupt:
        job.end("stopped", "it was stopped", 130)
        return 130
    except RlCliError as error:
        print(f"error: {error}", flush=True)
        job.end("failed", error.message, error.exit_code, error.hint)
        return error.exit_code
    except BaseException as error:
        traceback.print_exc()
        with suppress(OSError):  # it may be the very reason
            job.end("failed", f"{type(error).__name__}: {error}", 1, f"see {job.log}")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))  # type: ignore[arg-type]
