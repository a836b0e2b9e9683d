"""A third party's verdict on an answer, from processes that are killed when they take too long.

math-verify is an optional extra. It is never the grader: a hostile text costs it gigabytes and minutes, and
its verdicts change with its version. Usable from any thread. The processes end with this one, however it
ends: at once where they are idle, else when the time for the answer is over.
"""

from __future__ import annotations

import json
import os
import queue
import select
import subprocess
import threading
import time
from types import TracebackType

from rl_cli.core.errors import WorkFailed
from rl_cli.core.extras import require_extra
from rl_cli.core.processes import python_module

WORKER = "environments.rewards.second_opinion_worker"
START_LIMIT_S = 120.0
"""For the imports of a worker, which are not the answer's fault."""
LONGEST_TEXT = 20_000
"""Characters of an answer, from its end; a second opinion reads no more."""


class SecondOpinion:
    """A fixed number of workers. `limit_s` is wall-clock time for one answer.

    Raises:
        BadUsage: The extra `math` is not installed.
    """

    def __init__(self, workers: int = 1, limit_s: float = 5.0) -> None:
        require_extra("math")
        self._workers = [_Worker(limit_s) for _ in range(workers)]
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)

    def __enter__(self) -> SecondOpinion:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.kill()

    def pids(self) -> list[int]:
        """Of the workers that live."""
        return [pid for worker in self._workers if (pid := worker.pid()) is not None]

    def correct(self, gold: str, answer: str) -> bool | None:
        """Whether math-verify finds `answer` equal to `gold`; None where it failed or took too long.

        `gold` may end in `#### N`. Waits for an idle worker. A worker that was killed is replaced at once.
        """
        request = {"gold": gold.rsplit("####", 1)[-1].strip(), "answer": answer[-LONGEST_TEXT:]}
        worker = self._idle.get()
        try:
            return worker.ask(request)
        finally:
            self._idle.put(worker)


class _Worker:
    """One child process, started again after a kill; used by one thread at a time."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._process = self._start()
        self._ready = False

    def pid(self) -> int | None:
        return self._process.pid if self._process.poll() is None else None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def ask(self, request: dict[str, str]) -> bool | None:
        with self._lock:
            if not self._ready:
                if self._line(START_LIMIT_S) is None:
                    raise WorkFailed("math-verify does not start", "rl-cli doctor says what is missing")
                self._ready = True
            assert self._process.stdin
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
                line = self._line(self._limit_s)
            except BrokenPipeError:  # it ran out of memory
                line = None
            if line is not None:
                return json.loads(line)["correct"]
            self.kill()
            self._process, self._ready = self._start(), False
            return None

    def _line(self, limit_s: float) -> bytes | None:
        """The worker's next line; None at its end or when the time is over."""
        assert self._process.stdout
        until, line = time.monotonic() + limit_s, b""
        while not line.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                return None
            if not (piece := os.read(self._process.stdout.fileno(), 65_536)):
                return None
            line += piece
        return line

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            python_module(WORKER, str(START_LIMIT_S), str(self._limit_s)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
