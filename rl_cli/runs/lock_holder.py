"""Who holds the lock of a run that is over, for a person who waits for it."""

from __future__ import annotations

from rl_cli.core.processes import ProcessIdentity
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import State


def who_holds(run: RunDir) -> str:
    """What is being done under the lock, as far as that is known: a clause without a full stop."""
    state = run.state()
    if not supervisor_is_there(state):
        return "another command has it: `rl-cli runs sync`, or a resume"
    if _runs(state.get("processes", {}).get("uploader")):
        return "W&B is taking the rest of it, which may last a minute and a half"
    return "its supervisor is busy with its end"


def supervisor_is_there(state: State) -> bool:
    """Whether the supervisor that saw the run end still runs."""
    return _runs(state.get("supervisor"))


def _runs(known: dict[str, str] | None) -> bool:
    return bool(known and ProcessIdentity.from_dict(known).alive())
