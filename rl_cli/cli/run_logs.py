"""`rl-cli runs logs`: the log of one of a run's processes, line by line."""

from __future__ import annotations

import sys
import time
from typing import Any

from rl_cli.cli.output import print_json
from rl_cli.core.errors import BadUsage, did_you_mean
from rl_cli.core.printable import printable
from rl_cli.core.redaction import redact_text
from rl_cli.runs.follow import must_exist
from rl_cli.runs.log_lines import as_object, readable
from rl_cli.runs.logs import Tail
from rl_cli.runs.settle import settle
from rl_cli.runs.state_file import is_over

LOOK_EVERY_SECONDS = 0.25


def show_logs(run: Any, process: str, lines: int, follow: bool, as_json: bool) -> None:
    """Prints a log: structured lines readably.

    Args:
        run: A RunDir.
        process: Whose log.
        lines: Begin so many lines back.
        follow: Go on until the run is over.
        as_json: One JSON object per line: the fields of a structured one as they are, else its `text`.

    Raises:
        BadUsage: There is no such log.
        WorkFailed: The run's directory was deleted meanwhile.
    """
    known = sorted(path.stem for path in (run.path / "logs").glob("*.log"))
    if process not in known:
        raise BadUsage(f"{run.id} has no log of '{process}'", did_you_mean(process, known))
    tail, begun = Tail(run.log_path(process), lines), ""
    while True:
        over = not follow or is_over(settle(run))
        must_exist(run)
        *whole, begun = (begun + tail.read() + (tail.rest() if over else "")).split("\n")
        for line in [*whole, begun] if over and begun else whole:
            _show(line, as_json)
        sys.stdout.flush()
        if over:
            if not run.log_path(process).stat().st_size:
                print(f"nothing was written to the log of '{process}'", file=sys.stderr)
            return
        time.sleep(LOOK_EVERY_SECONDS)


def _show(line: str, as_json: bool) -> None:
    if as_json:
        print_json(as_object(line))
    else:
        print(printable(redact_text(told)) if (told := readable(line)) is not line else printable(line))
