"""One task for each of many things, none of which can stop the others: what fails or hangs is begun anew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from rl_cli.core.cuts import one_line

HUNG_SECONDS = 600.0
"""A job that gives no sign of life for so long is given up and begun anew."""
AGAIN_SECONDS = 30.0
"""Between a failure and the next try."""

Beat = Callable[[], None]


@dataclass
class Job:
    task: asyncio.Task[None]
    beat_at: float
    """On the clock of time.monotonic()."""
    trouble: str | None = None
    """Why it ended, if it failed."""
    ended_at: float | None = None


@dataclass
class Jobs:
    """Keeps a job for each name.

    Args:
        work: Does the job of a name; calls the other argument as a sign of life. Its return ends the job.
        on_trouble: Told of each failure, by name.
        hung_seconds: See HUNG_SECONDS.
        again_seconds: See AGAIN_SECONDS.
    """

    work: Callable[[str, Beat], Awaitable[None]]
    on_trouble: Callable[[str, str], None] = lambda name, trouble: None
    hung_seconds: float = HUNG_SECONDS
    again_seconds: float = AGAIN_SECONDS
    jobs: dict[str, Job] = field(default_factory=dict)
    given_up: set[asyncio.Task[None]] = field(default_factory=set)
    """Tasks that hung; they are cancelled, which some survive."""

    def keep(self, names: Iterable[str]) -> None:
        """Begins the jobs of these names that are not under way, and those that hang or failed anew."""
        now, wanted = time.monotonic(), set(names)
        for name in [name for name, job in self.jobs.items() if job.task.done()]:
            job = self.jobs[name]
            job.ended_at = job.ended_at or now
            if job.trouble is None or name not in wanted or now - job.ended_at >= self.again_seconds:
                del self.jobs[name]
        for name, job in list(self.jobs.items()):
            if not job.task.done() and now - job.beat_at > self.hung_seconds:
                job.task.cancel()
                self.given_up.add(job.task)
                job.task.add_done_callback(self.given_up.discard)
                del self.jobs[name]
                self.on_trouble(name, f"no sign of life for {now - job.beat_at:.0f} s; it is begun anew")
        for name in sorted(wanted - self.jobs.keys()):
            self._begin(name)

    async def close(self, seconds: float = 5.0) -> None:
        """Cancels all jobs; what does not end in time is left."""
        tasks = {job.task for job in self.jobs.values()} | self.given_up
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    def _begin(self, name: str) -> None:
        task = asyncio.ensure_future(self._guarded(name))
        self.jobs[name] = Job(task, time.monotonic())

    async def _guarded(self, name: str) -> None:
        await asyncio.sleep(0)  # until it is known as a job
        job, own = self.jobs[name], asyncio.current_task()

        def beat() -> None:
            job.beat_at = time.monotonic()

        try:
            await self.work(name, beat)
        except BaseException as error:  # SystemExit and KeyboardInterrupt would end the event loop
            if isinstance(error, asyncio.CancelledError) and own and own.cancelling():
                raise
            job.trouble = one_line(f"{type(error).__name__}: {error}", 300)
            self.on_trouble(name, job.trouble)
