"""The end of a run whose trainer is gone, as files: its state first, then its report."""

from __future__ import annotations

import traceback
from typing import Any

from rl_cli.core.files import explain_os_error
from rl_cli.runs.logs import last_lines
from rl_cli.runs.reports.report import write_report  # now: the package may be replaced before the end
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import StateWriter
from rl_cli.runs.times import now_text


def write_end(
    run: RunDir, writer: StateWriter, state: str, reason: str, figures: dict[str, Any], culprit: str
) -> None:
    """Writes the state; where that is impossible it is said in the supervisor's log.

    Args:
        run: The run.
        writer: The right to write its state.
        state: What it becomes.
        reason: Why.
        figures: Its last ones.
        culprit: The process whose log says why it failed.
    """
    figures = {**figures, "ended": now_text(), "heartbeat": now_text()}
    if state == "failed":
        figures["last_log_lines"] = last_lines(run.log_path(culprit))
    try:
        writer.move(state, reason, **figures)
    except OSError as error:  # what is left to do does not depend on it, and the event may be there
        print(f"error: the end cannot be written ({state}: {reason}): {explain_os_error(error)}")


def report_end(run: RunDir) -> None:
    """Writes the report; the run's end does not depend on it, and `runs report` tries again."""
    try:
        write_report(run)
    except OSError as error:
        print(f"error: there is no report: {explain_os_error(error)}")
    except Exception:
        traceback.print_exc()
