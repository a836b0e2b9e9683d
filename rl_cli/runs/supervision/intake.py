"""What a run's files gain, as its progress: row by row, so that each can be judged as it stood then."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from rl_cli.runs.progress import OF_TRAINER, Progress, Reader
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.supervision.silence import Silence

Surroundings = Mapping[str, Any]


class Intake:
    """Reads only what is new.

    Args:
        run: The run.
        total_steps: GRPO steps that are planned.
    """

    def __init__(self, run: RunDir, total_steps: int | None) -> None:
        self.run = run
        self.progress = Progress(total_steps)
        self.silence = Silence()
        self._reader = Reader(run)

    def moved(self, run: RunDir) -> None:
        """The run lies elsewhere now, and is read anew."""
        self.run = run
        self.progress, self._reader = Progress(self.progress.total_steps), Reader(run)

    def take(
        self,
        loading: bool,
        surroundings: Callable[[], Surroundings],
        judge: Callable[[Surroundings], None],
        seconds: float = math.inf,
    ) -> bool:
        """Takes in what is there; returns whether there was anything.

        Args:
            loading: The trainer is not ready yet.
            surroundings: What the rules see besides figures, at this moment.
            judge: Called after each row, so that what is found does not depend on how many came at a time.
            seconds: After so many, what is left waits for the next time: stop requests come in between.
        """
        news, until = False, time.monotonic() + seconds
        self.silence.look(self.run, loading)
        for rows, events in self._reader.batches():
            news = True
            if rows or any(event.get("kind") in OF_TRAINER for event in events):
                self.silence.broken()
            self.progress.feed([], events)
            known = surroundings()
            for row in rows:
                self.progress.feed([row], [])
                judge(known)
            if not rows:
                judge(known)
            if time.monotonic() > until:
                break
        return news

    def take_unjudged(self, loading: bool) -> None:
        self.take(loading, dict, lambda _: None)
