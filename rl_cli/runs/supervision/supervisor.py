"""The one process that owns a run: `python -P -m rl_cli.runs.supervision.supervisor RUN`; `launch` does so.

It holds the run's lock for its whole life. If it dies, the trainer goes on and leaves its exit in a file;
`settle` judges it then, or another supervisor takes the trainer over: `--attach`.
"""

from __future__ import annotations

import resource
import signal
import sys
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.errors import RlCliError
from rl_cli.core.files import explain_os_error
from rl_cli.core.own_process import redact_output
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import is_over
from rl_cli.runs.supervision import children
from rl_cli.runs.supervision.lifecycle import Supervisor
from rl_cli.runs.supervision.stop_requests import StopRequests
from rl_cli.runs.times import now_text
from rl_cli.spending.gate import RunSpending


def main(folder: str, attach: bool = False) -> int:
    """Sees the run in `folder` through, unless somebody else does or it is over.

    Args:
        folder: The run's.
        attach: Take over a lost run whose trainer still runs, rather than start one that was created.
    """
    redact_output()
    run = RunDir(folder)
    requests = StopRequests(run)

    def told_to_end(number: int, _: Any) -> None:
        requests.take_signal(number)

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    signal.signal(signal.SIGTERM, told_to_end)
    signal.signal(signal.SIGINT, told_to_end)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    children.adopt_orphans()
    try:
        with run.locked(timeout=1) as writer:
            state = run.state()
            if is_over(state) or state["state"] != ("lost" if attach else "created"):
                print(f"nothing to do: {run.id} is {state['state']}")
                return 0
            try:
                supervisor = Supervisor(run, writer, requests)
            except (RlCliError, ValueError) as error:  # a run.yaml that cannot be used
                what = one_line(str(error), 500)
                print(f"error: the run cannot be supervised: {what}")
                if not attach:
                    writer.move("failed", f"the run cannot be started: {what}", ended=now_text())
                    RunSpending(run.home, run.id, writer.state.get("spending")).close(0)
                return 1
            supervisor.take_over() if attach else supervisor.supervise()
    except TimeoutError as error:
        print(error)
    except OSError as error:
        print(f"error: {explain_os_error(error)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], attach="--attach" in sys.argv[2:]))
