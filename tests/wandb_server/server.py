"""A W&B of our own on loopback, for the real SDK: `with WandbServer() as server: ... server.url`."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import ThreadingHTTPServer
from typing import Any

from tests.wandb_server.faults import EVERY_FAULT, Fault
from tests.wandb_server.handler import Handler
from tests.wandb_server.records import RunRecord

KEY = "0123456789abcdef0123456789abcdef01234567"
"""The form of a real key; the default one that the server wants."""


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, *_: Any) -> None:
        """Clients hang up; that is no news."""


class WandbServer:
    """The endpoints that SDK 0.31 calls: GraphQL, file stream, storage.

    Not covered: artifacts, sweeps, parquet exports, sampling as the real server does it.

    Args:
        api_key: The key that is let in; None lets everybody in.
        entity: Whose key it is.
        crash_after: Seconds without a sign of life after which a running run is called crashed.
    """

    def __init__(
        self, api_key: str | None = KEY, entity: str = "team", crash_after: float | None = None
    ) -> None:
        self.api_key, self.entity, self.crash_after = api_key, entity, crash_after
        self.runs: dict[tuple[str, str, str], RunRecord] = {}
        self.requests: list[tuple[float, str, str | None]] = []
        """(Unix time, operation or file_stream or storage, kind of fault)."""
        self.unknown: list[str] = []
        """Operations that it did not know."""
        self.refused: set[str] = set()
        """Operations that it is to take for unknown."""
        self.faults: list[Fault] = []
        self.lock = threading.RLock()
        self.closing = threading.Event()
        self._handler = type("BoundHandler", (Handler,), {"owner": self})
        self._http = self._listen(0)
        self.port: int = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> WandbServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.plant(Fault("reset"), first=True)  # connections that are kept alive
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()

    @property
    def environment(self) -> dict[str, str]:
        """What a client needs."""
        key = {} if self.api_key is None else {"WANDB_API_KEY": self.api_key}
        return {"WANDB_BASE_URL": self.url, "WANDB_ERROR_REPORTING": "false", **key}

    def plant(self, fault: Fault | str, *, first: bool = False) -> Fault:
        """Plants a fault, or a copy of one of EVERY_FAULT by its name, from now on."""
        found = EVERY_FAULT[fault] if isinstance(fault, str) else fault
        planted = replace(found, hits=0, planted=time.monotonic())
        with self.lock:
            self.faults.insert(0 if first else len(self.faults), planted)
        return planted

    def heal(self) -> None:
        """Lifts all faults. What hangs already goes on hanging."""
        with self.lock:
            self.faults.clear()

    @contextmanager
    def refuse(self) -> Iterator[None]:
        """Nothing listens on the port meanwhile; connections that were open get an RST."""
        fault = self.plant(Fault("reset"), first=True)
        self._http.shutdown()
        self._http.server_close()
        try:
            yield
        finally:
            with self.lock:
                self.faults.remove(fault)
            self._http = self._listen(self.port)

    def find(self, entity: str | None, project: str | None, name: str) -> RunRecord | None:
        return self.runs.get((entity or self.entity, project or "uncategorized", name))

    def by_storage_id(self, storage_id: str) -> RunRecord | None:
        return next((run for run in self.runs.values() if run.storage_id == storage_id), None)

    def only_run(self) -> RunRecord:
        """The run, where there is just one."""
        (run,) = self.runs.values()
        return run

    def sessions(self) -> list[float]:
        """Unix times at which a process began to upload a run."""
        return [when for when, operation, _ in self.requests if operation == "RunResumeStatus"]

    def state_of(self, run: RunRecord) -> str:
        silent = time.time() - run.heartbeat
        crashed = run.state == "running" and self.crash_after is not None and silent > self.crash_after
        return "crashed" if crashed else run.state

    def fault_of(self, kinds: set[str]) -> Fault | None:
        with self.lock:
            return next((fault for fault in self.faults if fault.meets(kinds)), None)

    def _listen(self, port: int) -> ThreadingHTTPServer:
        http = _Http(("127.0.0.1", port), self._handler)
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return http
