"""Asking W&B with a real deadline: the SDK runs in a child process that can be killed.

Several calls of the SDK have no deadline of their own, and one that hangs cannot be given up inside a
process. The child gets the key in its environment only, keeps its files in a folder of its own, and is ended
with its wandb-core as soon as the answer is there, the deadline is over, or nobody wants the answer any more.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import selectors
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rl_cli.core.json_text import parse_json
from rl_cli.core.own_process import without_secrets
from rl_cli.core.processes import TREE, ProcessIdentity, kill_tree, python_module
from rl_cli.tracking.answers import FOLDER
from rl_cli.tracking.errors import WandbError, too_slow
from rl_cli.tracking.reach import must_make_sense

Rows = list[dict[str, Any]]

QUERY_SECONDS = 10.0
"""What the SDK itself gives one query, where the deadline does not say less."""
REMOVED = ("WANDB_DEBUG", "WANDB_CORE_DEBUG", "WANDB_MODE", "WANDB_SERVICE", "WANDB_RUN_ID", "WANDB_RESUME")
"""Settings of somebody's run, or (the first two) what makes wandb write the key into its logs."""
PIPE_BYTES = 1 << 16
"""What a pipe holds."""
SMALL = {"GOGC": "60", "GOMEMLIMIT": "32MiB", "MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "65536"}
"""Less memory for wandb-core and the child."""


def ask(operation: str, arguments: dict[str, Any], deadline: float) -> dict[str, Any]:
    """Asks W&B one thing.

    Args:
        operation: An operation of `rl_cli.tracking.sdk`: viewer, projects, runs, run, run_state,
            logged_steps, history, rows, files, system_metrics, stop.
        arguments: Its arguments.
        deadline: Seconds after which it is over, whatever W&B does.

    Raises:
        WandbError: There is no answer; its `kind` tells why.
    """
    with Asker() as asker:
        return asker.ask(operation, arguments, deadline)


async def ask_async(operation: str, arguments: dict[str, Any], deadline: float) -> dict[str, Any]:
    """As `ask`; cancelling it ends the child."""
    (found,) = await ask_all([(operation, arguments)], deadline)
    if isinstance(found, WandbError):
        raise found
    return found


async def ask_all(
    questions: Sequence[tuple[str, dict[str, Any]]], deadline: float
) -> list[dict[str, Any] | WandbError]:
    """Asks several things of one child; cancelling it ends the child.

    Args:
        questions: (operation, arguments) of each.
        deadline: Seconds for all of them together.

    Returns:
        For each the answer, or why there is none.
    """
    with Asker() as asker:
        call = asyncio.ensure_future(asyncio.to_thread(_answers, asker, questions, deadline))
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            asker.close()
            await call
            raise


def _answers(
    asker: Asker, questions: Sequence[tuple[str, dict[str, Any]]], deadline: float
) -> list[dict[str, Any] | WandbError]:
    until = time.monotonic() + deadline
    found: list[dict[str, Any] | WandbError] = []
    for operation, arguments in questions:
        try:
            found.append(asker.ask(operation, arguments, max(0.0, until - time.monotonic())))
        except WandbError as error:
            found.append(error)
    return found


class Asker:
    """Asks several things, one after the other, of one child that is started when it is needed.

    Not for two threads at once, but `close` may be called from another: whoever waits gets a WandbError.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._identity: ProcessIdentity | None = None
        self._folder: str | None = None
        self._rest = b""
        self._closed = False

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(
        self,
        operation: str,
        arguments: dict[str, Any],
        deadline: float,
        on_rows: Callable[[Rows], None] | None = None,
    ) -> dict[str, Any]:
        """Asks one thing (see `ask`).

        Args:
            operation: The operation.
            arguments: Its arguments.
            deadline: Seconds.
            on_rows: Gets the rows of an operation that sends them as they come.

        Raises:
            WandbError: There is no answer. After a deadline the next call starts another child.
        """
        until = time.monotonic() + deadline
        with self._ended_unless_answered():
            if not self._child:
                must_make_sense(deadline)
            child = self._child or self._start(deadline)
            request = json.dumps({"operation": operation, "arguments": arguments}) + "\n"
            with suppress(BrokenPipeError):  # it has said why, or its end is noticed below
                _stream(child.stdin).write(request.encode())
            for line in self._lines(child, until):
                answer = _understood(line)
                if "rows" in answer:
                    if on_rows:
                        on_rows(answer["rows"])
                    continue
                if "result" in answer:
                    result: dict[str, Any] = answer["result"]
                    return result
                raise WandbError.from_dict(answer["error"])
            raise too_slow(operation, deadline)

    def close(self) -> None:
        """Ends the child with all it started, and removes its folder."""
        self._closed = True
        self._end()

    def rest(self) -> None:
        """Ends the child, with the memory that it takes; the next question starts another."""
        self._end()

    def pids(self) -> list[int]:
        """The child, if there is one."""
        return [self._child.pid] if self._child else []

    @contextmanager
    def _ended_unless_answered(self) -> Iterator[None]:
        try:
            yield
        except WandbError as error:
            if error.kind in ("slow", "ended"):
                self._end()
            raise
        except BaseException:
            self._end()
            raise

    def _start(self, deadline: float) -> subprocess.Popen[bytes]:
        if self._closed:
            raise WandbError("ended", "nobody waits for W&B any longer")
        folder = self._folder = tempfile.mkdtemp(prefix=FOLDER)
        mark = secrets.token_hex(8)
        marks = [*os.environ.get(TREE, "").split(), mark]
        wanted: dict[str, str | None] = {
            **os.environ,
            **without_secrets(os.environ, "WANDB_"),
            **dict.fromkeys(REMOVED),
            **bounds(deadline),
            **SMALL,
            **dict.fromkeys(("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR", "TMPDIR"), folder),
            "WANDB_ERROR_REPORTING": "false",
            "WANDB_SILENT": "true",
            TREE: " ".join(marks),
        }
        with open(Path(folder) / "log", "ab") as log:
            child = subprocess.Popen(
                python_module("rl_cli.tracking.answers"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                start_new_session=True,
                env={name: value for name, value in wanted.items() if value is not None},
            )
        seen = ProcessIdentity.of(child.pid)
        self._identity = ProcessIdentity(seen.pid, seen.started, seen.host, seen.boot, mark)
        self._child, self._rest = child, b""
        return child

    def _lines(self, child: subprocess.Popen[bytes], until: float) -> Iterator[bytes]:
        """Lines of the answer until the deadline.

        Raises:
            WandbError: The child has ended.
        """
        output = _stream(child.stdout)
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while (left := until - time.monotonic()) > 0:
                if b"\n" in self._rest:
                    line, self._rest = self._rest.split(b"\n", 1)
                    yield line
                    continue
                if not selector.select(left):
                    return
                data = os.read(output.fileno(), PIPE_BYTES)
                if not data:
                    raise WandbError("ended", f"the process that asks W&B has ended{self._last_words()}")
                self._rest += data

    def _last_words(self) -> str:
        with suppress(OSError, TypeError):
            lines = (Path(str(self._folder)) / "log").read_text(errors="replace").strip().splitlines()
            return f": {lines[-1]}" if lines else ""
        return ""

    def _end(self) -> None:
        child, identity, folder = self._child, self._identity, self._folder
        self._child = self._identity = self._folder = None
        if child and identity:
            kill_tree(identity, grace_seconds=0)
            child.wait()
            for stream in (child.stdin, child.stdout):
                with suppress(OSError):
                    _stream(stream).close()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def bounds(deadline: float) -> dict[str, str]:
    """Environment variables by which the SDK itself gives up first, and then tells why."""
    query = max(1.0, min(QUERY_SECONDS, deadline / 4))
    return {
        "WANDB_X_GRAPHQL_RETRY_MAX": "1",
        "WANDB_X_GRAPHQL_RETRY_WAIT_MIN_SECONDS": "0.2",
        "WANDB_X_GRAPHQL_RETRY_WAIT_MAX_SECONDS": "0.5",
        "WANDB_X_GRAPHQL_TIMEOUT_SECONDS": f"{query:g}",
        "WANDB_HTTP_TIMEOUT": f"{max(2, round(query * 1.5))}",
    }


def _understood(line: bytes) -> dict[str, Any]:
    """A line of the child; rows in it are as W&B has them.

    Raises:
        WandbError: It cannot be read.
    """
    try:
        answer: dict[str, Any] = parse_json(line.decode())
    except ValueError as error:
        raise WandbError("bad_answer", f"W&B's rows cannot be read: {error}") from error
    return answer


def _stream(stream: Any) -> Any:
    assert stream is not None
    return stream
