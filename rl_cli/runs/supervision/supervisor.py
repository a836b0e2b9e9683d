"""The one process that owns a run: `python -P -m rl_cli.runs.supervision.supervisor RUN`; `launch` does so.

It holds the run's lock for its whole life, starts the trainer and what tracks it in W&B, waits for readiness,
applies the health rules to every new row, honours stop requests, ends what it started, and writes the end.
It wakes five times a second, reads only what is new, and at once when the trainer ends. If it dies, the
trainer goes on and leaves its exit in a file; `settle` judges it then, or another supervisor takes the
trainer over: `--attach`.
"""

from __future__ import annotations

import math
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.errors import RlCliError
from rl_cli.core.files import explain_os_error
from rl_cli.core.own_process import redact_output
from rl_cli.runs import health
from rl_cli.runs.checks.clock import Moment, SystemClock, seconds_between
from rl_cli.runs.logs import last_lines, mask_logs
from rl_cli.runs.place import place_of
from rl_cli.runs.progress import OF_TRAINER, Progress, Reader
from rl_cli.runs.recent_samples import RecentSamples
from rl_cli.runs.reports.report import write_report  # now: the package may be replaced before the end
from rl_cli.runs.run_dir import RunDir, asked_by
from rl_cli.runs.settle import end_leftovers
from rl_cli.runs.state_file import StateWriter, is_over
from rl_cli.runs.strays import with_survivors
from rl_cli.runs.supervision import children
from rl_cli.runs.supervision.held_folder import HeldFolder
from rl_cli.runs.supervision.room import RoomWatch
from rl_cli.runs.supervision.run_limits import limits_of
from rl_cli.runs.supervision.tracking_children import TrackingChildren
from rl_cli.runs.supervision.verdict import Verdict, ending
from rl_cli.runs.supervision.workers import Workers
from rl_cli.runs.times import now_text, seconds_of
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
    """

    def __init__(self, run: RunDir, writer: StateWriter) -> None:
        self.run, self.writer = run, writer
        self.folder = HeldFolder(run.path)
        self.config = run.config()
        self.progress = Progress(self.config.grpo.steps)
        self.reader = Reader(run)
        self.spending = RunSpending(run.home, run.id, writer.state.get("spending"))
        self.limits = limits_of(self.config, self.spending.rate)
        self.refused: str | None = None
        self.tracking = TrackingChildren(run, self.config.tracking.wandb, self.config.backend.name)
        self.workers = Workers(run, self.config.backend.name)
        self.verdict: Verdict | None = None
        self.began = self.grew = time.monotonic()
        self.sizes: tuple[int, ...] = ()
        self.last_beat = 0.0
        self.gate = health.AlertGate(self.config.health.alerts.cooldown_steps)
        self.samples = RecentSamples(run)
        self.room = RoomWatch(run.path)
        self.told: dict[str, Any] | None = None

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
            state, reason = ending(self.run, self.workers, self.verdict, self._request(), self.progress.step)
        except OSError as error:
            state, reason = "failed", f"the supervisor failed: {explain_os_error(error)}"
            print(reason)
        except Exception as error:
            traceback.print_exc()
            state, reason = "failed", f"the supervisor failed: {type(error).__name__}: {error}"
        self._end(state, reason)

    def _start_trainer(self) -> None:
        if request := self._request():
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
        self._read(judged=False)
        self.grew = time.monotonic() - self._silence(Moment.from_dict(known.get("clock")))
        self.gate.remember(self.progress.current_alerts, self.progress.rows)

    def _watch(self) -> None:
        """Until the trainer has ended."""
        trainer = self.workers.trainer
        assert trainer
        while not trainer.ended(WAKE_SECONDS):
            self._follow_the_folder()
            news = self._read(seconds=READ_SECONDS)
            if self.writer.state["state"] == "starting" and self._ready():
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
            self.progress, self.reader = Progress(self.progress.total_steps), Reader(self.run)
        what = f"its directory was moved from {was} while it ran" if now else "its directory was deleted"
        self.verdict = Verdict("failed", what, time.monotonic(), asked=False, gone=True)

    def _read(self, judged: bool = True, seconds: float = math.inf) -> bool:
        """Takes in what the files have gained; returns whether there was anything.

        Args:
            judged: Apply the rules after each row, so that what they find does not depend on how many came
                at a time.
            seconds: After so many, what is left waits for the next time: stop requests come in between.
        """
        news, until = False, time.monotonic() + seconds
        sizes = tuple(path.stat().st_size if path.exists() else 0 for path in self._grown_by_trainer())
        if sizes != self.sizes:
            self.grew, self.sizes = time.monotonic(), sizes
        for rows, events in self.reader.batches():
            news = True
            if rows or any(event.get("kind") in OF_TRAINER for event in events):
                self.grew = time.monotonic()
            self.progress.feed([], events)
            known = self._surroundings() if judged else {}
            for row in rows:
                self.progress.feed([row], [])
                if judged:
                    self._apply_rules(known)
            if judged and not rows:
                self._apply_rules(known)
            if time.monotonic() > until:
                break
        return news

    def _grown_by_trainer(self) -> list[Path]:
        """Files besides metrics and events whose growth is progress: the log only until it has loaded."""
        starting = self.writer.state["state"] == "starting"
        return [self.run.path / "samples.jsonl", *([self.run.log_path("trainer")] if starting else [])]

    def _silence(self, beaten: Moment | None) -> float:
        """Seconds since the trainer wrote anything, by the times of what it wrote.

        Args:
            beaten: The last heartbeat. The wall clock may have been set since: what passed is bounded by it.
        """
        times = [path.stat().st_mtime for path in self._grown_by_trainer() if path.exists()]
        heard = seconds_of(str(self.progress.heard))
        times += [] if heard is None else [heard]
        if not times:
            return 0.0
        newest, now = max(times), SystemClock().now()
        silence = now.wall - newest
        if beaten:
            silence = min(silence, max(0.0, beaten.wall - newest) + seconds_between(beaten, now))
        return max(0.0, silence)

    def _ready(self) -> bool:
        """Whether the trainer has loaded what it needs; takes in what it said about it."""
        ready = self.run.ready("trainer")
        if ready and isinstance(ready.get("total_steps"), int) and ready["total_steps"]:
            self.progress.total_steps = ready["total_steps"]
            self.limits = limits_of(self.config, self.spending.rate, ready["total_steps"])
        return ready is not None

    def _running(self) -> None:
        self.grew = time.monotonic()
        since = {"running_since": now_text(), "running_clock": SystemClock().now().to_dict()}
        self.writer.move("running", None, **since, **self.progress.figures())

    def tell_to_end(self, number: int) -> None:
        """A signal means stop. The request is kept here too: on a full disk it may not get into a file."""
        by, reason = "the system", f"the supervisor got {signal.Signals(number).name}"
        self.told = self.told or {"by": by, "reason": reason, "now": False}
        with suppress(OSError):
            self.run.request_stop(by, reason)

    def _request(self) -> dict[str, Any] | None:
        return self.run.stop_requested() or self.told

    def _heed_stop_request(self) -> None:
        request = self._request()
        if request is None:
            return
        loading = self.writer.state["state"] == "starting"
        grace = 0.0 if loading or request.get("now") else self.config.health.stop_grace_seconds
        if self.verdict is None:
            self._conclude("stopped", asked_by(request), grace)
        elif request.get("now"):
            self.verdict.kill_at = min(self.verdict.kill_at, time.monotonic())

    def _conclude(self, state: str, reason: str, grace: float, rule: str | None = None) -> None:
        shown = rule == "stalled"  # where it hangs, by a signal that ends it
        self.verdict = Verdict(state, reason, time.monotonic() + grace, asked=grace > 0, forced=shown)
        verdict = {"state": state, "reason": reason}
        self.writer.move("stopping", reason, verdict=verdict, rule=rule, **self.progress.figures())

    def _surroundings(self) -> dict[str, Any]:
        """What the rules see besides figures, at this moment."""
        now = time.monotonic()
        known = {"now": time.time(), "quiet_seconds": now - self.grew, "refused": self.refused}
        known["running_seconds"] = now - self.began + (self.writer.state.get("seconds_before") or 0.0)
        return {**known, "samples": self.samples.read(), **self.room.look(now)}

    def _apply_rules(self, surroundings: Mapping[str, Any]) -> None:
        if self.verdict:
            return
        findings = health.inspect(health.view_of(self.progress, self.limits, **surroundings))
        if findings and findings[0].verdict and self.workers.trainer and self.workers.trainer.ended(0):
            # It ended by itself, so its word counts, but not above figures that are no numbers.
            findings = [one for one in findings if one.verdict is None or one.rule == "not_finite"]
        if findings and findings[0].verdict:
            self._decide(findings[0])
            return
        for finding in self.gate.passed(findings, self.progress.rows):
            self._raise_alert(finding)

    def _decide(self, finding: health.Finding) -> None:
        assert finding.verdict
        grace = 0.0 if finding.at_once else self.config.health.stop_grace_seconds
        with suppress(OSError):  # a full disk: the verdict is what counts
            self.run.append_event("decision", by="health", what=finding.verdict, reason=finding.message)
        if finding.verdict == "failed":
            self._raise_alert(finding)
        if finding.rule == "stalled":
            self._show_where_it_hangs()
        if not finding.at_once:
            with suppress(OSError):  # then the trainer is ended when its grace is over
                self.run.request_stop(f"the health rule '{finding.rule}'", finding.message)
        self._conclude(finding.verdict, finding.message, grace, finding.rule)

    def _show_where_it_hangs(self) -> None:
        """SIGABRT makes Python's fault handler write the stack of every thread to the trainer's log."""
        trainer = self.workers.trainer
        assert trainer
        if not trainer.ended(0):
            os.kill(trainer.identity.pid, signal.SIGABRT)
            trainer.ended(1.0)

    def _raise_alert(self, finding: health.Finding) -> None:
        with suppress(OSError):
            self.run.append_event("alert", **health.alert_fields(finding))

    def _beat(self, news: bool) -> None:
        if news or time.monotonic() - self.last_beat >= HEARTBEAT_SECONDS:
            self.last_beat = time.monotonic()
            children.reap_orphans()
            self.writer.beat(**self._counted(), **self.progress.figures())
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
            self._read(judged=False)
        figures = {**self.progress.figures(), "ended": now_text(), "heartbeat": now_text()}
        figures |= self._counted() if began else {}
        if state == "failed":
            figures["last_log_lines"] = last_lines(self.run.log_path(self.workers.culprit))
        try:
            self.writer.move(state, reason, **figures)
        except OSError as error:  # what is left to do does not depend on it, and the event may be there
            print(f"error: the end cannot be written ({state}: {reason}): {explain_os_error(error)}")
        self.spending.close(took)
        self._report()
        if self.verdict and self.verdict.gone:
            end_leftovers(self.writer.state)
        else:
            self.tracking.finish()
        with suppress(OSError):
            mask_logs(self.run.path / "logs")
            self._read(judged=False)
            self.writer.update(wandb_url=self.progress.wandb_url, alerts=self.progress.alerts)

    def _report(self) -> None:
        try:
            write_report(self.run)
        except OSError as error:
            print(f"error: there is no report: {explain_os_error(error)}")
        except Exception:  # the run's end does not depend on it, and `runs report` tries again
            traceback.print_exc()


def main(folder: str, attach: bool = False) -> int:
    """Sees the run in `folder` through, unless somebody else does or it is over.

    Args:
        folder: The run's.
        attach: Take over a lost run whose trainer still runs, rather than start one that was created.
    """
    redact_output()
    run = RunDir(folder)
    supervisor: Supervisor | None = None

    def told_to_end(number: int, _: Any) -> None:
        if supervisor:
            supervisor.tell_to_end(number)
        else:
            run.request_stop("the system", f"the supervisor got {signal.Signals(number).name}")

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
                supervisor = Supervisor(run, writer)
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
