"""Uploads a run while it goes on: `python -P -m rl_cli.tracking.uploader RUN_DIR MODE`.

A process of its own, the only one with the key. In mode live it runs wandb's sync command on the segment that
the recorder writes; in mode online the run's own session uploads. Either way it reads back what W&B has and
says so in tracking.json. Where live sync has failed it uploads what is lacking itself, in rounds: an error
that is fatal for a session (401, 404) stays so when W&B is well again. It passes on a stop that was pressed
on the run's page. At the end it has a bounded time; what is left then is for `rl-cli runs sync`.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress

from rl_cli.core.cuts import one_line
from rl_cli.core.processes import ProcessIdentity, kill_tree
from rl_cli.runs.attempts import read_resume
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import is_over
from rl_cli.runs.supervision import children
from rl_cli.runs.tracking_file import how_to_sync, write_tracking
from rl_cli.tracking.ask import Asker
from rl_cli.tracking.catch_up import one_round
from rl_cli.tracking.errors import WandbError
from rl_cli.tracking.read_back import ReadBack, conclusion, what_lacks
from rl_cli.tracking.rows import Key
from rl_cli.tracking.session import alert, prepare
from rl_cli.tracking.sync_command import segments, start_sync

LOOK_EVERY_SECONDS = 1.0
FIRST_CHECK_SECONDS = 2.0
CHECK_SECONDS = 15.0
"""Between two questions to W&B, once all has been well for a while; the first ones come sooner."""
ANSWER_SECONDS = 10.0
LATE_SECONDS = 20.0
"""A row may take this long to W&B before it is said to lag behind."""
STUCK_SECONDS = 45.0
"""A session that has brought nothing for this long, while W&B answers and rows are late, is given up."""
ROUND_SECONDS = 30.0
ROUND_EVERY_SECONDS = 30.0
"""From one round to the next; twice as long after each that brought nothing, up to:"""
MOST_ROUND_EVERY_SECONDS = 120.0
LATE_IN_ROUNDS_SECONDS = 60.0
"""As LATE_SECONDS, where the rows come in rounds."""
END_SECONDS = 60.0
"""How long it may take to bring the rest once the run is over."""
HOPELESS_SECONDS = 8.0
"""And as long as W&B does not answer at all."""
MOST_EMPTY_ROUNDS = 2
"""Rounds that only say how the run has ended."""


class Uploader:
    """Args: the run, and its mode (live or online)."""

    def __init__(self, run: RunDir, mode: str, asker: Asker) -> None:
        self.run, self.mode = run, mode
        self.back = ReadBack(run, asker)
        self.asker = asker
        self.sync: children.Child | None = None
        self.given_up = mode == "online"
        """Whether the rest is uploaded in rounds; online, only at the end."""
        self.since = time.monotonic()
        self.behind = False
        self.round_every = ROUND_EVERY_SECONDS
        self.next_round = time.monotonic()
        self.pause = FIRST_CHECK_SECONDS
        self.next_check = time.monotonic() + FIRST_CHECK_SECONDS
        self.knows_page = True
        self.url: str | None = None

    def upload(self) -> None:
        """Until the run is over and W&B has it all, or the time is up."""
        try:
            while not is_over(self.run.state()):
                self.back.look_here()
                self._keep_going()
                if time.monotonic() >= self.next_check:
                    self._check()
                time.sleep(LOOK_EVERY_SECONDS)
            self._bring_the_rest()
        finally:
            self._end_sync()

    def _keep_going(self) -> None:
        """Sees that something uploads: the live sync first; after its end, rounds."""
        if self.sync is None and not self.given_up and self._earlier_attempts_are_there():
            if found := segments(self.run)[-1:]:
                self.sync, self.since = start_sync(self.run, found, live=True), time.monotonic()
        elif self.sync and self.sync.wait(0) is not None:
            self._end_sync()
            self.given_up = True

    def _earlier_attempts_are_there(self) -> bool:
        """A resumed run first brings what its earlier attempts have left."""
        resume = read_resume(self.run.path)
        if resume is None:
            return True
        if self.back.checked is None:
            return False
        step = resume.step
        old = {key for key in self.back.lacking() if key[0] != "global_step" or key[1] <= step}
        if old and time.monotonic() >= self.next_round:
            self._round(old)
        return not old

    def _check(self) -> None:
        """Reads back, says what is so, and takes to rounds where nothing moves."""
        answered = self.back.look_there(ANSWER_SECONDS)
        quiet = time.monotonic() - max(self.since, self.back.grew)
        if answered and self.sync and self.back.lacking(LATE_SECONDS) and quiet > STUCK_SECONDS:
            self._end_sync()
            self.given_up = True
        self._tell()
        if answered:
            self._heed_the_page()
            if self._comes_in_rounds() and time.monotonic() >= self.next_round and self.back.lacking():
                self._round()
        well = answered and not self.back.lacking(LATE_SECONDS)
        self.pause = min(self.pause * 2, CHECK_SECONDS if well else CHECK_SECONDS / 2)
        self.next_check = time.monotonic() + self.pause

    def _comes_in_rounds(self) -> bool:
        return self.given_up and self.mode == "live"

    def _round(self, only: set[Key] | None = None) -> None:
        began, had = time.monotonic(), len(self.back.have)
        one_round(self.back, ROUND_SECONDS, over=False, given_up=self._round_is_enough, only=only)
        self.back.look_there(ANSWER_SECONDS)
        vain = len(self.back.have) == had
        self.round_every = (
            min(2 * self.round_every, MOST_ROUND_EVERY_SECONDS) if vain else ROUND_EVERY_SECONDS
        )
        self.next_round = began + self.round_every
        self._tell()

    def _round_is_enough(self) -> bool:
        """Takes in, while a round goes on, what the run writes: how late a row is counts from then."""
        self.back.look_here()
        return is_over(self.run.state())

    def _is_behind(self) -> bool:
        """Whether rows are late. What was behind is so until all that is late at all has come: between two
        rounds, and with W&B as ill as before, a run does not look well."""
        bound = LATE_IN_ROUNDS_SECONDS if self._comes_in_rounds() and not self.behind else LATE_SECONDS
        self.behind = bool(self.back.lacking(bound))
        return self.behind

    def _tell(self) -> None:
        self.back.look_here()
        state, error = self.back.trouble(), self.back.error
        if state == "ok" and self._is_behind():
            state = "behind"
        line = one_line(error.message, 200) if error else None
        with suppress(OSError):  # a full disk is the run's business
            record = self.back.record(self.mode, state, line)
            write_tracking(self.run, record if self.knows_page else {**record, "stop_is_told": False})
            url = self.back.remote.get("url")
            if url and url != self.url and self.mode == "live":
                self.run.append_event("wandb", mode="live", url=url, dir=str(self.run.path / "wandb"))
                self.url = url

    def _heed_the_page(self) -> None:
        """Passes a stop on that was pressed at W&B; of a server that does not tell, tracking.json says so."""
        if not self.knows_page or not self.back.remote:
            return
        try:
            answer = self.asker.ask("stop_asked", {"path": self.back.path}, ANSWER_SECONDS)
        except WandbError as error:
            if error.kind == "refused":
                self.knows_page = False
            return
        if answer.get("stopped"):
            self.run.request_stop("W&B", "stopped there")

    def _bring_the_rest(self) -> None:
        """The recorder ends its segment, the sync ends by itself; what is lacking then comes in rounds."""
        began = time.monotonic()
        until = began + END_SECONDS
        self._await_recorder(until)
        self.back.look_here()
        answered_at, empty_rounds = began, 0
        while (left := until - time.monotonic()) > 0:
            if self.sync and self.sync.wait(0) is not None:
                self._end_sync()
            if self.back.look_there(min(ANSWER_SECONDS, max(1.0, left))):
                answered_at = time.monotonic()
                complete = self.back.is_whole()
                if complete and (self.back.end_is_told() or empty_rounds >= MOST_EMPTY_ROUNDS):
                    break
                if self.sync is None or time.monotonic() - max(began, self.back.grew) > HOPELESS_SECONDS:
                    self._end_sync()
                    empty_rounds += complete
                    one_round(self.back, min(ROUND_SECONDS, until - time.monotonic()), over=True)
            elif time.monotonic() - answered_at > HOPELESS_SECONDS:
                break
            self._tell()
            time.sleep(LOOK_EVERY_SECONDS)
        self._conclude()

    def _await_recorder(self, until: float) -> None:
        known = self.run.state().get("processes", {}).get("recorder")
        while known and ProcessIdentity.from_dict(known).alive() and time.monotonic() < until:
            time.sleep(0.2)

    def _conclude(self) -> None:
        self._tell()
        record = conclusion(self.back, self.mode)
        with suppress(OSError):  # a full disk is the run's business
            write_tracking(self.run, record)
        if record["state"] != "done":
            alert(self.run, what_lacks(record), how_to_sync(self.run))

    def _end_sync(self) -> None:
        if self.sync:
            kill_tree(self.sync.identity, grace_seconds=0)
            self.sync.wait(1)
        self.sync = None


def main(folder: str, mode: str) -> int:
    run = RunDir(folder)
    prepare(run)
    with Asker() as asker:
        Uploader(run, mode, asker).upload()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
