"""One look at all runs of a home, in which none of them holds up the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from rl_cli.monitoring.bounded_calls import BoundedCalls
from rl_cli.monitoring.live_runs import is_orphan, run_names
from rl_cli.monitoring.telling import Tell, Telling
from rl_cli.monitoring.watching import Watched, decide
from rl_cli.runs.checks.due_checks import DueChecks
from rl_cli.runs.checks.monitor import check_now
from rl_cli.runs.launch import attach_run
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.settle import settle
from rl_cli.runs.state_file import WATCHED, is_over
from rl_cli.runs.store import runs_folder
from rl_cli.tracking.watcher import REFRESH_SECONDS, refresh
from tools.spec import Decision, Judge

BY = "monitor"
AT_ONCE = 8
"""Runs that are looked at side by side."""
RUN_SECONDS = 60.0
"""For one run, without the time that its judge or W&B take, which have bounds of their own."""


class Once:
    """The monitor of one home, for one look.

    Args:
        home: RL_CLI_HOME.
        judge_of: Who judges a run; None: the rules do.
        tell: See Tell.
    """

    def __init__(self, home: Path, judge_of: Callable[[RunDir], Judge | None], tell: Tell) -> None:
        self.folder, self.judge_of = runs_folder(home), judge_of
        self.telling = Telling(home, tell)
        self.given_up: list[str] = []
        """Runs whose files did not answer, and "" for the folder of them all: each holds a thread."""

    async def look(self) -> bool:
        """Takes what is due now of all runs, and acts on it; tells each end that was not told yet.

        Returns:
            Whether a run needs a person.
        """
        try:
            names = await BoundedCalls().answer("the folder of the runs", lambda: run_names(self.folder))
        except TimeoutError as error:
            self._give_up("", str(error))
            return True
        some = asyncio.Semaphore(AT_ONCE)
        try:
            return any(await asyncio.gather(*(self._guarded(name, some) for name in names)))
        finally:
            self.telling.endings.save()

    async def _guarded(self, run_id: str, some: asyncio.Semaphore) -> bool:
        """Whatever is wrong with one run does not stop the others."""
        async with some:
            try:
                async with asyncio.timeout(RUN_SECONDS) as limit:
                    return await self._one(RunDir(self.folder / run_id), limit)
            except TimeoutError as error:
                late = f"its files have not answered for {RUN_SECONDS:g} s; it is left until the next look"
                if limit.expired():
                    self._give_up(run_id, late)
                else:
                    self.telling.trouble(run_id, str(error) or type(error).__name__)
            except Exception as error:
                self.telling.trouble(run_id, str(error) or type(error).__name__)
            return True

    async def _one(self, run: RunDir, limit: asyncio.Timeout) -> bool:
        if not await asyncio.to_thread((run.path / "state.json").exists):
            return False
        state = await asyncio.to_thread(settle, run)
        if is_orphan(state):
            await asyncio.to_thread(attach_run, run)
            self.telling.tell(run.id, {"kind": "attached"})
        news = self.telling.endings.is_news(run.id, state)
        if is_over(state) and not (await asyncio.to_thread(_takes_end, run)):
            return news and await asyncio.to_thread(self.telling.end, run, state)
        if state.get("backend") == WATCHED and (until := limit.when()) is not None:
            limit.reschedule(until + REFRESH_SECONDS)
        await asyncio.to_thread(refresh, run)
        outcome = await asyncio.to_thread(check_now, run)
        if outcome is None:
            await asyncio.to_thread(self.telling.live, run)
            return False
        for alert in outcome.alerts:
            self.telling.tell(run.id, {"kind": "alert", **alert})
        judge = await asyncio.to_thread(self.judge_of, run)
        decision = await decide(run, outcome, judge and _uncounted(judge, limit), BY)
        if decision and outcome.why != "end":
            said = {"by": decision.by, "what": decision.what, "reason": decision.reason, "why": outcome.why}
            self.telling.tell(run.id, {"kind": "decision", **said})
        return await asyncio.to_thread(self.telling.conclude, run, Watched(outcome, decision), followed=False)

    def _give_up(self, run_id: str, what: str) -> None:
        self.given_up.append(run_id)
        self.telling.trouble(run_id, what)


def _uncounted(judge: Judge, limit: asyncio.Timeout) -> Judge:
    """The judge, with a limit that stands still while it thinks."""

    async def judged(digest: str) -> Decision:
        loop, until = asyncio.get_running_loop(), limit.when()
        assert until is not None
        left = until - loop.time()
        limit.reschedule(None)
        try:
            return await judge(digest)
        finally:
            limit.reschedule(loop.time() + left)

    return judged


def _takes_end(run: RunDir) -> bool:
    """Takes the end of a run that somebody judges; False if nobody does, or the end is taken."""
    checks = DueChecks(run)
    return checks.begun and checks.take_end()
