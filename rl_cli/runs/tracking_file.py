"""tracking.json: what W&B has of a run, as far as it is known.

{"mode": live|online|offline|watch, "state": recorded|ok|behind|unavailable|unauthorised|done|incomplete,
"rows": recorded, "uploaded": rows that were read back, "remote_state", "remote_step", "checked": Unix time,
"error": one line, "url", "files_lacking": names of files that W&B lacks at the end}. Written by the process
that records (offline) or uploads (live, online), or watches.
"""

from __future__ import annotations

import shlex
from typing import Any

from rl_cli.core.errors import RlCliError
from rl_cli.core.files import read_json, write_json
from rl_cli.core.processes import ProcessIdentity
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import State, is_over

NAME = "tracking.json"
FINAL = ("done", "incomplete")
AHEAD_STEPS = 5
"""state.json is told of steps a little later than W&B may be."""


def write_tracking(run: RunDir, record: dict[str, Any]) -> None:
    """Raises OSError."""
    write_json(run.path / NAME, record)


def recorded(run: RunDir) -> dict[str, Any] | None:
    """The file as it is; None if there is none, or a damaged one."""
    try:
        record = read_json(run.path / NAME)
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("state"), str) else None


def read_tracking(run: RunDir, state: State | None = None) -> dict[str, Any] | None:
    """The file as it is true now: an uploader that is gone no longer says `ok`.

    Args:
        run: The run.
        state: Its state, where that is at hand.
    """
    record = recorded(run)
    if record is None or record["state"] in FINAL or record.get("mode") not in ("live", "online"):
        return record
    known = (state or run.state()).get("processes", {}).get("uploader")
    if known and ProcessIdentity.from_dict(known).alive() is False:
        return {**record, "state": "incomplete", "error": "the process that uploads is gone"}
    return record


def how_to_sync(run: RunDir) -> str:
    return f"to upload the rest: rl-cli runs sync {shlex.quote(run.id)}"


def disagreements(run: RunDir) -> list[str]:
    """Sentences that name what W&B says and what is true here, where the two differ."""
    state = run.state()
    record = read_tracking(run, state)
    remote = (record or {}).get("remote_state")
    if record is None or not isinstance(remote, str):
        return []
    here, step = state["state"], state.get("step")
    lines = _of_figures(record, step)
    if is_over(state):
        return (
            [f"W&B says running; here it is {here} (step {step})", *lines] if remote == "running" else lines
        )
    if remote != "running" and here in ("running", "stopping", "lost"):
        verb = "runs" if here == "running" else f"is {here}"
        lines.insert(0, f"W&B says {remote}; here it {verb} (step {step}). What is here counts")
    return lines


def _of_figures(record: dict[str, Any], step: object) -> list[str]:
    """Sentences about steps, beyond the time that a row takes to W&B, and about figures of one step."""
    lines, remote = [], record.get("remote_step")
    if isinstance(step, int) and isinstance(remote, int) and record["state"] != "done":
        late = record["state"] in ("behind", "incomplete")
        if remote > step + AHEAD_STEPS or (late and remote < step):
            lines.append(f"W&B's newest step is {remote}; here it is {step}")
    differs = record.get("differs")
    if isinstance(differs, dict) and isinstance(differs.get("metrics"), dict):
        for name, values in differs["metrics"].items():
            here, there = values
            lines.append(f"W&B says {name} {there:g} at step {differs['step']}; here it is {here:g}")
    return lines


def in_words(record: dict[str, Any], why: bool = True) -> str:
    """One line, e.g. `live, ok: 140 of 150 rows`; with the trouble, unless `why` is false."""
    rows, uploaded, error = record.get("rows"), record.get("uploaded"), record.get("error") if why else None
    mode, state = record.get("mode"), record["state"]
    if mode == "offline" and state == "recorded":
        return f"offline: {rows} rows recorded"
    if mode == "watch":
        return state + (f" ({error})" if error else "")
    unavailable = "metrics unavailable" if state in ("unavailable", "unauthorised") else state
    reason = f" ({error})" if error else ""
    files = ", without " + ", ".join(record["files_lacking"]) if record.get("files_lacking") else ""
    return f"{mode}, {unavailable}: {uploaded} of {rows} rows{files}{reason}"


def what_is_lacking(record: dict[str, Any]) -> str:
    """What W&B is known to lack, e.g. `3 of 20 rows and 1 file (config.yaml)`; empty if nothing."""
    rows, files = record["rows"] - record["uploaded"], record.get("files_lacking") or []
    of_rows = [f"{rows} of {record['rows']} rows"] if rows else []
    of_files = [f"{len(files)} file{'s' if len(files) > 1 else ''} ({', '.join(files)})"] if files else []
    return " and ".join(of_rows + of_files)


def is_only_played(run: RunDir) -> bool:
    """A replay whose config does not ask for W&B: its figures are nobody's results, and stay here."""
    if run.state().get("backend") != "replay":
        return False
    try:
        return run.config().tracking.wandb == "auto"
    except (RlCliError, OSError, ValueError):  # a run.yaml that cannot be used
        return True


def tracking_notes(run: RunDir) -> list[str]:
    """What a person should know of a run's tracking; nothing where all is well."""
    record = read_tracking(run)
    notes = disagreements(run)
    if record is None or record["state"] == "done":
        return notes
    if record.get("mode") == "offline" and is_only_played(run):
        return notes
    if record.get("mode") == "offline":
        sync = f"rl-cli runs sync {shlex.quote(run.id)}"
        return [*notes, f"W&B is offline. To upload it, with a key (WANDB_API_KEY): {sync}"]
    if record.get("stop_is_told") is False and not is_over(run.state()):
        notes.append(f"W&B does not tell of a stop there; here: rl-cli runs stop {shlex.quote(run.id)}")
    if record["state"] != "ok":
        left = f"; {how_to_sync(run)}" if record["state"] == "incomplete" else ""
        notes.append(f"W&B: {in_words(record)}{left}")
    return notes


def tracking_facts(run: RunDir) -> dict[str, Any] | None:
    """tracking.json as tools show it, with what differs from here; None for a run that is not tracked."""
    record = read_tracking(run)
    if record is None:
        return None
    lines = disagreements(run)
    hint = {"hint": how_to_sync(run)} if record["state"] == "incomplete" else {}
    return {**record, **hint, **({"disagreements": lines} if lines else {})}
