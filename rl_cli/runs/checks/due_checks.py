"""When a run is to be judged, and who has taken which judgement: checks.json.

Due times are counted from the moment the run was `running`: the first after health.first_check_seconds, or
after 5 % of budget.max_hours where that is given and sooner; then every health.check_every_seconds. They
are counted on a clock that no change of time or zone moves (see `clock`) and kept with the run, so that any
process can ask for them, now or after a restart. Each is taken once, by whoever takes it first. Those that
passed while nobody asked count as one, and how many they were is kept and said in an event.

A judgement that takes a while can be held: if its holder gives it back or dies, or its monitor is found to
hang, it is due again at once; from one that is merely slow it is taken after HELD_SECONDS.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rl_cli.core.files import read_json, write_json
from rl_cli.core.processes import ProcessIdentity
from rl_cli.runs.checks.clock import Clock, Moment, SystemClock, seconds_between
from rl_cli.runs.checks.elapsed import Anchor, elapsed_at, holds, read_anchors, with_anchor
from rl_cli.runs.progress import is_earlier
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.times import seconds_of, time_text

PLANNED_SHARE = 0.05
LATE_SECONDS = 60.0
"""A due time that nobody took for so long, or for half of the time between two, was missed."""
HELD_SECONDS = 300.0
"""Whoever holds a judgement for longer hangs: no model is waited for so long."""
NEEDS_PERSON = "needs_person"
"""Rule of the alert in which a judgement turns to a person; it is not judged again."""
LOGGED = 100

Taken = dict[str, Any]


class DueChecks:
    """The judgements of one run. Several of these, in several processes, may be used at a time.

    Args:
        run: The run.
        clock: What time it is.
    """

    def __init__(self, run: RunDir, clock: Clock | None = None) -> None:
        self.run = run
        self.path = run.path / "checks.json"
        self.clock = clock or SystemClock()
        config = run.config()
        hours = config.budget.max_hours
        early = math.inf if hours is None else PLANNED_SHARE * hours * 3600
        self.first_seconds = min(config.health.first_check_seconds, early)
        self.every_seconds = config.health.check_every_seconds
        self.stall_seconds = config.health.stall_seconds

    @property
    def begun(self) -> bool:
        """Somebody has judged the run before."""
        taken = self._taken(self.run.state())
        return bool(taken["log"] or taken["alerts"] or taken["ended"])

    def seconds_left(self) -> float | None:
        """Until the next judgement that nobody has taken; 0 if it is overdue, None before the run runs."""
        state = self.run.state()
        taken, now = self._taken(state), self.clock.now()
        anchors = _anchors(state, taken)
        if not anchors:
            return None
        if not holds(anchors, now):
            anchors = self._anchored(now) or anchors
        elapsed = elapsed_at(anchors, now)
        return 0.0 if _is_owed(taken, now) else max(0.0, self._due(taken["checks"]) - elapsed)

    def next_due(self) -> float | None:
        """The same as Unix time, as the wall clock stands now."""
        left = self.seconds_left()
        return None if left is None else self.clock.now().wall + left

    def missed(self) -> int:
        """Due times that passed while nobody was there to take them."""
        return int(self._taken(self.run.state())["missed"])

    def take_check(self, hold: bool = False) -> bool:
        """Takes what is due now; False if nothing is, or somebody else has taken it.

        Args:
            hold: It is due again at once if this process dies before `settled`.
        """
        self.seconds_left()  # makes an anchor where one is needed
        with self._locked():
            state, now = self.run.state(), self.clock.now()
            taken = self._taken(state)
            anchors = _anchors(state, taken)
            if not anchors:
                return False
            elapsed = elapsed_at(anchors, now)
            passed = self._passed(elapsed)
            if passed <= taken["checks"] and not _is_owed(taken, now):
                return False
            late = min(LATE_SECONDS, self.every_seconds / 2)
            missed = max(0, self._passed(elapsed - late) - taken["checks"])
            ago = elapsed - self._due(taken["checks"])
            record = {
                "due": time_text(now.wall - max(0.0, ago)),
                "taken": time_text(now.wall),
                "missed": missed,
            }
            taken["checks"] = max(passed, taken["checks"])
            taken["missed"] += missed
            taken["log"] = [*taken["log"], record][-LOGGED:]
            taken["anchors"] = [anchor.to_dict() for anchor in with_anchor(anchors, now)]
            self._write(taken, hold)
        if missed:
            with suppress(OSError):  # a full disk: checks.json has it
                self.run.append_event("checks_missed", missed=missed, gap_seconds=round(ago))
        return True

    def has_new(self, alerts: list[dict[str, Any]]) -> bool:
        """Whether some of the run's alerts were taken by nobody yet."""
        return len(alerts) > int(self._taken(self.run.state())["alerts"])

    def take_alerts(self, alerts: list[dict[str, Any]], hold: bool = False) -> list[dict[str, Any]]:
        """Takes the alerts (all of the run's are given) that nobody has judged yet."""
        if not self.has_new(alerts):
            return []
        with self._locked():
            taken = self._taken(self.run.state())
            new = alerts[taken["alerts"] :]
            worth = [alert for alert in new if _is_to_judge(alert)]
            if new:
                self._write({**taken, "alerts": len(alerts)}, hold and bool(worth))
            return worth

    def take_end(self) -> bool:
        """Takes the last judgement, of a run that is over; False if somebody has it."""
        with self._locked():
            taken = self._taken(self.run.state())
            if taken["ended"]:
                return False
            self._write({**taken, "ended": True}, hold=False)
            return True

    def is_held(self) -> bool:
        """Whether this process still holds what it took; False if it was given up and taken from it."""
        return _holder(self._taken(self.run.state())) == ProcessIdentity.current()

    def settled(self) -> None:
        """What this process held is judged."""
        self._let_go(ProcessIdentity.current(), None)

    def give_back(self, holder: ProcessIdentity | None = None) -> None:
        """What this process held, or the one given, is due again."""
        self._let_go(holder or ProcessIdentity.current(), {"by": None})

    def _due(self, index: int) -> float:
        """Seconds after the start."""
        return self.first_seconds + index * self.every_seconds

    def _passed(self, elapsed: float) -> int:
        """Due times up to now."""
        if elapsed < self.first_seconds:
            return 0
        return math.floor((elapsed - self.first_seconds) / self.every_seconds) + 1

    def _anchored(self, now: Moment) -> list[Anchor]:
        """Keeps an anchor of this moment; empty if that is not possible."""
        with suppress(OSError), self._locked():
            state = self.run.state()
            taken = self._taken(state)
            anchors = with_anchor(_anchors(state, taken), now) if state.get("running_since") else []
            write_json(self.path, {**taken, "anchors": [anchor.to_dict() for anchor in anchors]})
            return anchors
        return []

    def _taken(self, state: dict[str, Any]) -> Taken:
        """What was taken since the run was last started; a file that is damaged counts for nothing."""
        since = state.get("running_since")
        fresh: Taken = {"since": since, "checks": 0, "anchors": [], "open": None, "ended": False}
        kept: Taken = {"alerts": 0, "missed": 0, "log": []}
        try:
            found = read_json(self.path)
        except (OSError, ValueError, RecursionError):
            return {**fresh, **kept}
        if not isinstance(found, dict) or not all(_is_count(found.get(key, 0)) for key in COUNTS):
            return {**fresh, **kept}
        log = found.get("log")
        kept = {key: found.get(key, 0) for key in ("alerts", "missed")}
        kept["log"] = log if isinstance(log, list) else []
        if found.get("since", since) != since:  # it was resumed: its due times begin anew
            return {**fresh, **kept}
        held = found.get("open")
        return {
            **fresh,
            **kept,
            "checks": found.get("checks", 0),
            "anchors": [anchor.to_dict() for anchor in read_anchors(found.get("anchors"))],
            "open": held if isinstance(held, dict) else None,
            "ended": found.get("ended") is True,
        }

    def _let_go(self, holder: ProcessIdentity, then: dict[str, Any] | None) -> None:
        with self._locked():
            taken = self._taken(self.run.state())
            if _holder(taken) == holder:
                write_json(self.path, {**taken, "open": then})

    def _write(self, taken: Taken, hold: bool) -> None:
        now = self.clock.now()
        by = {"by": ProcessIdentity.current().to_dict(), "since": now.to_dict()}
        of_another = None if _is_owed(taken, now) else taken["open"]
        write_json(self.path, {**taken, "open": by if hold else of_another})

    @contextmanager
    def _locked(self) -> Iterator[None]:
        import filelock

        with filelock.FileLock(self.run.path / ".checks.lock", timeout=10):
            yield


COUNTS = ("checks", "alerts", "missed")


def _is_to_judge(alert: dict[str, Any]) -> bool:
    """Not one that a person was asked about, that is good news, or that is of an earlier attempt."""
    settled = alert.get("rule") == NEEDS_PERSON or alert.get("severity") == "info"
    return not settled and not is_earlier(alert)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _anchors(state: dict[str, Any], taken: Taken) -> list[Anchor]:
    """What the time that a run has been running is told from; empty before it is running."""
    start = seconds_of(state.get("running_since"))
    if start is None:
        return []
    begin = Anchor(Moment.from_dict(state.get("running_clock")) or Moment(start), 0.0)
    return read_anchors(taken["anchors"]) or [begin]


def _holder(taken: Taken) -> ProcessIdentity | None:
    try:
        return ProcessIdentity.from_dict(taken["open"]["by"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _is_owed(taken: Taken, now: Moment) -> bool:
    """Somebody took a judgement and did not come to its end."""
    if not taken["open"]:
        return False
    holder, since = _holder(taken), Moment.from_dict(taken["open"].get("since"))
    late = since is not None and seconds_between(since, now) > HELD_SECONDS
    return holder is None or late or holder.alive() is False
