"""A run from its start to its end, as the process that owns it sees it through.

It starts the trainer and what tracks it in W&B, waits for readiness, applies the health rules to every new
row, honours stop requests, ends what it started, and writes the end. It wakes five times a second, reads
only what is new, and at once when the trainer ends.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from rl_cli.core.files import explain_os_error
from rl_cli.runs import health
from rl_cli.runs.checks.clock import Moment, SystemClock
from rl_cli.runs.logs import mask_logs
from rl_cli.runs.place import place_of
from rl_cli.runs.run_dir import RunDir, asked_by
from rl_cli.runs.settle import end_leftovers
from rl_cli.runs.state_file import StateWriter
from rl_cli.runs.strays import with_survivors
from rl_cli.runs.supervision import children
from rl_cli.runs.supervision.closing import report_end, write_end
from rl_cli.runs.supervision.held_folder import HeldFolder
from rl_cli.runs.supervision.intake import Intake
from rl_cli.runs.supervision.judging import Judging
from rl_cli.runs.supervision.run_limits import limits_of
from rl_cli.runs.supervision.stop_requests import StopRequests
from rl_cli.runs.supervision.tracking_children import TrackingChildren
from rl_cli.runs.supervision.verdict import Verdict, ending
from rl_cli.runs.supervision.workers import Workers
from rl_cli.runs.times import now_text
from rl_cli.spending.gate import RunSpending

WAKE_SECONDS = 0.2
HEARTBEAT_SECONDS = 2.0
READ_SECONDS = 1.0
"""Of one look; rows come faster than they can be judged only after this process was suspended."""


class Supervisor:
    """Sees one run through.

    Args:
        run: The run, in state `created`.
        writer: The right to write its state.
        requests: To stop it.
    """

    def __init__(self, run: RunDir, writer: StateWriter, requests: StopRequests) -> None:
        self.run, self.writer, self.requests = run, writer, requests
        self.folder = HeldFolder(run.path)
        self.config = run.config()
        self.intake = Intake(run, self.config.grpo.steps)
        self.spending = RunSpending(run.home, run.id, writer.state.get("spending"))
        self.limits = limits_of(self.config, self.spending.rate)
        self.refused: str | None = None
        self.tracking = TrackingChildren(run, self.config.tracking.wandb, self.config.backend.name)
        self.workers = Workers(run, self.config.backend.name)
        self.verdict: Verdict | None = None
        self.began = time.monotonic()
        self.last_beat = 0.0
        self.judging = Judging(run, self.config.health.alerts.cooldown_steps)

    def supervise(self) -> None:
        """From `created` to the end. What goes wrong in here ends the run as failed."""
        now = now_text()
        owner = children.own_identity().to_dict()
        place = place_of(self.run.path)
        self.writer.move("starting", None, supervisor=owner, started=now, heartbeat=now, place=place)
        self._see_through(self._start_trainer)

    def take_over(self) -> None:
        """From `lost` to the end: the trainer that the supervisor before this one started still runs."""
        self._see_through(self._adopt_trainer)

    def _see_through(self, begin: Callable[[], None]) -> None:
        try:
            begin()
            if self.workers.trainer:
                self._watch()
            state, reason = ending(
                self.run, self.workers, self.verdict, self.requests.first(), self.intake.progress.step
            )
        except OSError as error:
            state, reason = "failed", f"the supervisor failed: {explain_os_error(error)}"
            print(reason)
        except Exception as error:
            traceback.print_exc()
            state, reason = "failed", f"the supervisor failed: {type(error).__name__}: {error}"
        self._end(state, reason)

    def _start_trainer(self) -> None:
        if request := self.requests.first():
            self.verdict = Verdict("stopped", asked_by(request), time.monotonic(), asked=False)
            return
        self.writer.update(**self.workers.start())
        assert self.workers.trainer
        self.spending.adopt(children.own_identity(), self.workers.trainer.identity)
        self._remember(self.tracking.start())

    def _remember(self, processes: dict[str, Any]) -> None:
        with suppress(OSError):  # a disk that is full for a moment: they are ended by this process anyway
            self.writer.update(processes={**self.writer.state["processes"], **processes})

    def _adopt_trainer(self) -> None:
        """Goes on where the last supervisor was: loading, running, or ending the trainer for a reason."""
        known = self.writer.state
        trainer = self.workers.adopt(known["processes"])
        self.began -= trainer.age()
        owner = children.own_identity()
        changes = {"supervisor": owner.to_dict(), "heartbeat": now_text(), "ended": None}
        changes["place"] = place_of(self.run.path)
        state, reason = "running" if self._ready() else "starting", None
        if verdict := known.get("verdict"):
            state, reason = "stopping", verdict["reason"]
            kill_at = time.monotonic() + self.config.health.stop_grace_seconds
            self.verdict = Verdict(verdict["state"], verdict["reason"], kill_at, asked=True)
        with suppress(OSError):
            self.run.append_event("attached", supervisor=owner.pid, trainer=trainer.pid)
        self.writer.move(state, reason, **changes)
        self.spending.adopt(owner, trainer)
        self._remember(self.tracking.adopt(known["processes"]))
        self.intake.take_unjudged(self._loading())
        beaten = Moment.from_dict(known.get("clock"))
        self.intake.silence.went_on(self.run, self._loading(), self.intake.progress.heard, beaten)
        self.judging.gate.remember(self.intake.progress.current_alerts, self.intake.progress.rows)

    def _watch(self) -> None:
        """Until the trainer has ended."""
        trainer = self.workers.trainer
        assert trainer
        while not trainer.ended(WAKE_SECONDS):
            self._follow_the_folder()
            news = self._read(READ_SECONDS)
            if self._loading() and self._ready():
                self._running()
            self._heed_stop_request()
            self.refused = self.refused or self.spending.use(time.monotonic() - self.began)
            if not news and time.monotonic() - self.last_beat >= HEARTBEAT_SECONDS:
                self._apply_rules(self._surroundings())
            self._look_at_helpers()
            if self.verdict and time.monotonic() >= self.verdict.kill_at:
                self.verdict.forced = True
                self.workers.end_trainer()
                self._name_survivors(self.verdict)
            self._beat(news)
        self._follow_the_folder()
        self._read()  # its last rows are judged as the others were

    def _name_survivors(self, verdict: Verdict) -> None:
        """A trainer that cannot be ended keeps the run in `stopping`."""
        reason = with_survivors(verdict.reason, self.workers.survivors())
        if reason not in (verdict.reason, self.writer.state["reason"]):
            with suppress(OSError):  # a full disk
                self.writer.update(reason=reason)

    def _look_at_helpers(self) -> None:
        if self.verdict is None and (reason := self.workers.failed_helper()):
            self._conclude("failed", reason, grace=0.0)

    def _follow_the_folder(self) -> None:
        """A trainer cannot go on in a directory that was moved away under it; its end is written there."""
        was, now = self.run.path, self.folder.where()
        if now == was or (self.verdict and self.verdict.gone):
            return
        if now:
            self.run, self.writer.folder = RunDir(now), now
            self.requests.run = self.run
            self.intake.moved(self.run)
        what = f"its directory was moved from {was} while it ran" if now else "its directory was deleted"
        self.verdict = Verdict("failed", what, time.monotonic(), asked=False, gone=True)

    def _read(self, seconds: float = math.inf) -> bool:
        return self.intake.take(self._loading(), self._surroundings, self._apply_rules, seconds)

    def _loading(self) -> bool:
        return bool(self.writer.state["state"] == "starting")

    def _ready(self) -> bool:
        """Whether the trainer has loaded what it needs; takes in what it said about it."""
        ready = self.run.ready("trainer")
        if ready and isinstance(ready.get("total_steps"), int) and ready["total_steps"]:
            self.intake.progress.total_steps = ready["total_steps"]
            self.limits = limits_of(self.config, self.spending.rate, ready["total_steps"])
        return ready is not None

    def _running(self) -> None:
        self.intake.silence.broken()
        since = {"running_since": now_text(), "running_clock": SystemClock().now().to_dict()}
        self.writer.move("running", None, **since, **self.intake.progress.figures())

    def _heed_stop_request(self) -> None:
        request = self.requests.first()
        if request is None:
            return
        grace = 0.0 if self._loading() or request.get("now") else self.config.health.stop_grace_seconds
        if self.verdict is None:
            self._conclude("stopped", asked_by(request), grace)
        elif request.get("now"):
            self.verdict.kill_at = min(self.verdict.kill_at, time.monotonic())

    def _conclude(self, state: str, reason: str, grace: float, rule: str | None = None) -> None:
        shown = rule == "stalled"  # where it hangs, by a signal that ends it
        self.verdict = Verdict(state, reason, time.monotonic() + grace, asked=grace > 0, forced=shown)
        verdict = {"state": state, "reason": reason}
        self.writer.move("stopping", reason, verdict=verdict, rule=rule, **self.intake.progress.figures())

    def _surroundings(self) -> dict[str, Any]:
        running = time.monotonic() - self.began + (self.writer.state.get("seconds_before") or 0.0)
        return self.judging.surroundings(self.intake.silence.seconds(), running, self.refused)

    def _apply_rules(self, surroundings: Mapping[str, Any]) -> None:
        if self.verdict:
            return
        if found := self.judging.look(
            self.intake.progress, self.limits, surroundings, self.workers.trainer_ended
        ):
            self._decide(found)

    def _decide(self, finding: health.Finding) -> None:
        assert finding.verdict
        grace = 0.0 if finding.at_once else self.config.health.stop_grace_seconds
        with suppress(OSError):  # a full disk: the verdict is what counts
            self.run.append_event(
                "decision",
                by="health",
                what=finding.verdict,
                reason=finding.message,
                evidence=finding.evidence,
                **self.intake.progress.reached(),
            )
        if finding.verdict == "failed":
            self.judging.alert(finding, self.intake.progress)
        if finding.rule == "stalled":
            self.workers.show_where_the_trainer_hangs()
        if not finding.at_once:
            with suppress(OSError):  # then the trainer is ended when its grace is over
                self.run.request_stop(f"the health rule '{finding.rule}'", finding.message)
        self._conclude(finding.verdict, finding.message, grace, finding.rule)

    def _beat(self, news: bool) -> None:
        if news or time.monotonic() - self.last_beat >= HEARTBEAT_SECONDS:
            self.last_beat = time.monotonic()
            children.reap_orphans()
            self.writer.beat(**self._counted(), **self.intake.progress.figures())
            if started := self.tracking.look_after():
                self._remember(started)

    def _counted(self) -> dict[str, Any]:
        """What this moment is on clocks that nobody sets, beside the heartbeat's time on the wall clock."""
        seconds = round(time.monotonic() - self.began, 3)
        return {"clock": SystemClock().now().to_dict(), "seconds": seconds}

    def _end(self, state: str, reason: str) -> None:
        """Ends what is left, writes the end, then what may take a moment: the report, W&B."""
        began = self.workers.trainer is not None
        took = time.monotonic() - self.began if began else 0.0
        self.workers.end()
        reason = with_survivors(reason, self.workers.survivors())
        if not self.run.path.is_dir():
            print(f"{reason}: there is nowhere to write its end")
            end_leftovers(self.writer.state)
            self.spending.close(took)
            return
        with suppress(OSError):  # nothing may come before the end is written
            self.intake.take_unjudged(self._loading())
        figures = {**self.intake.progress.figures(), **(self._counted() if began else {})}
        write_end(self.run, self.writer, state, reason, figures, self.workers.culprit)
        self.spending.close(took)
        report_end(self.run)
        if self.verdict and self.verdict.gone:
            end_leftovers(self.writer.state)
        else:
            self.tracking.finish()
        with suppress(OSError):
            mask_logs(self.run.path / "logs")
            self.intake.take_unjudged(self._loading())
            self.writer.update(wandb_url=self.intake.progress.wandb_url, alerts=self.intake.progress.alerts)
