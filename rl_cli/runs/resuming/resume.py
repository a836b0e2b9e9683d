"""Going on with a run that is over: in its own directory, from its last good checkpoint.

What came after that checkpoint is moved to attempts/<n>/, so that no step is in the figures twice. Every
stage can be done again: whoever is killed in the middle has left a run that is over as before, and the next
resume does it all anew.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl_cli.core.errors import BadUsage
from rl_cli.core.files import explain_os_error, read_jsonl, write_atomic, write_json
from rl_cli.core.processes import ProcessIdentity, kill_tree
from rl_cli.core.settings import load_settings
from rl_cli.runs import checkpoints
from rl_cli.runs.attempts import NAME
from rl_cli.runs.backends import prepare
from rl_cli.runs.containment import must_be_its_own
from rl_cli.runs.launch import attach_run, start_supervisor
from rl_cli.runs.lock_holder import supervisor_is_there, who_holds
from rl_cli.runs.resuming.jsonl_cut import cut_lines, lines_of
from rl_cli.runs.resuming.plan import Plan, goes_on, make_plan
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.settle import settle
from rl_cli.runs.state_file import NO_EVALUATION, State, StateWriter, is_over, set_reserve_aside
from rl_cli.runs.times import now_text
from rl_cli.spending.gate import RunSpending, reserve_run
from rl_cli.spending.rates import rate_here

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig

LOCK_SECONDS = 60.0
"""A supervisor that has written the end holds the lock while it writes the report and W&B takes the rest."""
UPLOAD_SECONDS = 8.0
"""How long W&B may go on taking it: the next attempt brings what is left."""
CUT = ("metrics.jsonl", "samples.jsonl")
OF_THE_END = ("evaluations/best.jsonl", "evaluations/final.jsonl", "stop.json")


@dataclass(frozen=True)
class Resumed:
    """What became of a resume."""

    run: RunDir
    attached: bool
    """The trainer was still there and got a new supervisor; nothing was put back."""
    attempt: int
    step: int
    """The step that it goes on from; 0: it begins at the beginning."""
    checkpoint: Path | None
    notes: list[str]
    """What a person should know: checkpoints that could not be used, and why."""

    def sentence(self) -> str:
        if self.attached:
            return "its trainer still runs, and is watched over again"
        if self.checkpoint is None:
            return f"begins at the beginning: there is no good checkpoint (attempt {self.attempt})"
        return f"goes on from step {self.step} (attempt {self.attempt})"


def resume_run(
    run: RunDir, changes: Mapping[str, Any] | None = None, session: str | None = None, timeout: float = 15
) -> Resumed:
    """Starts the next attempt of a run that is over; a trainer that still runs gets a new supervisor instead.

    Args:
        run: The run.
        changes: Dotted field -> value, from here on; only fields that may change in the middle of a run.
        session: Of the conversation that resumes it: its budget counts too.
        timeout: Seconds that the supervisor may take to own the run.

    Raises:
        BadUsage: It goes on already, has nothing left to do, a change is not possible, or something in its
            directory leads out of it.
        Refused: A budget does not allow it.
        WorkFailed: The supervisor did not come up; the run is kept, as failed.
    """
    state = settle(run)
    if state["state"] == "lost" and not is_over(state):
        if changes:
            raise BadUsage(
                f"the trainer of {run.id} still runs, so nothing can be changed",
                f"resume it without changes, or stop it first: rl-cli runs stop {run.id}",
            )
        attach_run(run, timeout)
        state = run.state()
        return Resumed(run, True, state.get("attempt") or 1, state.get("step") or 0, None, [])
    must_be_its_own(run.path)
    try:
        make_plan(run, state, changes or {})  # what cannot be resumed ends nobody's upload
        with _held(run) as writer:
            plan, config = make_plan(run, writer.state, changes or {})
            if config.backend.name == "trl":  # a replay has its file with it
                prepare(config)
            reserved = _reserve(run, plan, config, session)
            try:
                put_back(run, writer, plan, config, reserved)
            except BaseException:
                RunSpending(run.home, run.id, reserved).close(0)
                raise
    except OSError as error:
        raise explain_os_error(error, run.path) from error
    start_supervisor(run, timeout)
    return Resumed(run, False, plan.attempt, plan.step, plan.checkpoint, plan.notes)


@contextmanager
def _held(run: RunDir) -> Iterator[StateWriter]:
    """The run's lock, once whoever saw it end has let go of it; an upload of the end has to make way.

    Raises:
        BadUsage: It goes on, or nobody lets go.
    """
    began = time.monotonic()
    with ExitStack() as stack:
        while True:
            try:
                writer = stack.enter_context(run.locked(timeout=0.5))
            except TimeoutError:
                state = run.state()
                if not is_over(state):
                    raise goes_on(run, state) from None
                waited = time.monotonic() - began
                patience = LOCK_SECONDS if supervisor_is_there(state) else UPLOAD_SECONDS
                if waited > patience:
                    problem = f"{run.id} cannot be resumed yet: {who_holds(run)}"
                    raise BadUsage(problem, "try again once that is done") from None
                if waited > UPLOAD_SECONDS:
                    _end_upload(state)
            else:
                break
        yield writer


def _end_upload(state: State) -> None:
    """The supervisor then lets go of the run. Nothing is lost: what W&B lacks comes with the next attempt."""
    if known := state.get("processes", {}).get("uploader"):
        kill_tree(ProcessIdentity.from_dict(known), grace_seconds=0)


def _reserve(run: RunDir, plan: Plan, config: RunConfig, session: str | None) -> dict[str, Any]:
    """Reserves what the rest of the run is expected to take."""
    settings = load_settings()
    rate = rate_here(config, settings)
    return reserve_run(plan.rest_of(config, rate), run.home, settings, rate, session)


def put_back(
    run: RunDir, writer: StateWriter, plan: Plan, config: RunConfig, reserved: Mapping[str, Any]
) -> None:
    """Makes the directory what it was after the plan's step, in state `created`."""
    for stage in STAGES:
        stage(run, plan)
    set_reserve_aside(run.path)
    fresh = dict.fromkeys(("started", "running_since", "ended", "supervisor", "heartbeat", "phase"))
    fresh |= dict.fromkeys(("verdict", "rule", "last_log_lines", "place", "ports", "clock", "seconds"))
    known = {**NO_EVALUATION, **(writer.state.get("eval") or {})}
    writer.move(
        "created",
        None,
        **fresh,
        resumed=now_text(),
        creator=ProcessIdentity.current().to_dict(),
        attempt=plan.attempt,
        seconds_before=plan.seconds_before,
        processes={},
        step=plan.step,
        total_steps=config.grpo.steps,
        alerts=[{"attempt": plan.attempt - 1, **alert} for alert in writer.state.get("alerts") or []],
        eval={**known, "best": None, "final": None},
        spending=dict(reserved) or None,
    )


def _keep_attempt(run: RunDir, plan: Plan) -> None:
    """Copies what ended with the last attempt to attempts/<n>/; what an earlier try put there stays."""
    folder = run.path / "attempts" / str(plan.attempt - 1)
    folder.mkdir(parents=True, exist_ok=True)
    ours = (run.path.glob(f".{name}.*.tmp") for name in (*CUT, NAME))
    for left in chain(folder.rglob(".*.tmp"), *ours):  # by one that was killed in a write
        left.unlink()
    for name in CUT:
        _, cut = cut_lines(run.path / name, plan.keeps)
        path = folder / name
        earlier = lines_of(path)
        known = set(earlier)
        if new := [line for line in cut if line not in known]:
            write_atomic(path, b"".join(new + earlier))
    names = ["state.json", *OF_THE_END]
    names += [str(path.relative_to(run.path)) for path in _said_by_workers(run)]
    for name in names:
        source, target = run.path / name, folder / name
        if source.is_file() and not target.exists():
            target.parent.mkdir(exist_ok=True)
            write_atomic(target, source.read_bytes())


def _decide(run: RunDir, plan: Plan) -> None:
    record = {
        "attempt": plan.attempt,
        "checkpoint": str(plan.checkpoint.relative_to(run.path)) if plan.checkpoint else None,
        "step": plan.step,
        "changes": plan.changes,
        "time": now_text(),
    }
    write_json(run.path / NAME, record)


def _drop_checkpoints(run: RunDir, plan: Plan) -> None:
    """Those after the plan's: damaged, or written when the figures were no numbers any more."""
    checkpoints.sweep(run.path)
    for one in checkpoints.all_checkpoints(run.path):
        if one.step > plan.step or plan.checkpoint is None:
            checkpoints.remove(one.path)


def _cut_figures(run: RunDir, plan: Plan) -> None:
    for name in CUT:
        kept, cut = cut_lines(run.path / name, plan.keeps)
        if cut:
            write_atomic(run.path / name, b"".join(kept))


def _forget_the_end(run: RunDir, plan: Plan) -> None:
    for name in OF_THE_END:
        (run.path / name).unlink(missing_ok=True)
    for path in _said_by_workers(run):
        path.unlink(missing_ok=True)
    if plan.checkpoint is None:
        shutil.rmtree(run.path / "evaluations", ignore_errors=True)


def _tell(run: RunDir, plan: Plan) -> None:
    """The event, once."""
    checkpoint = str(plan.checkpoint.relative_to(run.path)) if plan.checkpoint else None
    event = {"attempt": plan.attempt, "step": plan.step, "checkpoint": checkpoint, "changes": plan.changes}
    told = [e for e in read_jsonl(run.path / "events.jsonl") if e.get("kind") == "resumed"]
    if not told or {name: told[-1].get(name) for name in event} != event:
        run.append_event("resumed", **event, notes=plan.notes)


def _said_by_workers(run: RunDir) -> list[Path]:
    return [path for name in ("exit", "ready") for path in (run.path / name).glob("*.json")]


STAGES: tuple[Callable[[RunDir, Plan], None], ...] = (
    _keep_attempt,
    _decide,
    _drop_checkpoints,  # before the figures that say why they cannot be used
    _cut_figures,
    _forget_the_end,
    _tell,
)
