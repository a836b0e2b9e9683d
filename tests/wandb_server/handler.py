"""HTTP of the stand-in: finds out what a request is, lets a planted fault have it, else answers."""

from __future__ import annotations

import base64
import gzip
import json
import re
import socket
import struct
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from tests.wandb_server import reading, writing
from tests.wandb_server.faults import Fault

if TYPE_CHECKING:
    from tests.wandb_server.server import WandbServer

OPERATIONS = {**writing.OPERATIONS, **reading.OPERATIONS}
_NAME = re.compile(r"\b(?:query|mutation)\s+(\w+)")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: WandbServer

    def log_message(self, *_: Any) -> None:
        pass

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_POST(self) -> None:
        body, path = self._body(), urlsplit(self.path).path
        if path == "/graphql":
            request = json.loads(body or b"{}")
            name = _NAME.search(request.get("query", ""))
            operation = request.get("operationName") or (name.group(1) if name else "?")
            if not self._ill({"graphql", operation}, operation) and self._logged_in():
                self._graphql(operation, request.get("query", ""), request.get("variables") or {})
        elif path.endswith("/file_stream"):
            if not self._ill({"file_stream"}, "file_stream") and self._logged_in():
                self._file_stream(path, json.loads(body or b"{}"))
        else:  # telemetry
            self._answer(404, {"error": "not found"})

    def do_PUT(self) -> None:
        body = self._body()
        if not self._ill({"storage"}, "storage"):
            run, name = self._stored()
            if run is None:
                self._answer(404, {"error": "no such run"})
            else:
                run.files[name] = body
                self._answer(200, b"")

    def do_GET(self) -> None:
        if not self._ill({"storage"}, "storage"):
            run, name = self._stored()
            content = run.files.get(name) if run else None
            self._answer(404 if content is None else 200, content or b"")

    def _graphql(self, operation: str, query: str, variables: dict[str, Any]) -> None:
        answer = OPERATIONS.get(operation)
        try:
            if answer is None or operation in self.owner.refused:
                self.owner.unknown.append(operation)
                raise writing.GraphqlError(f"unknown operation {operation}")
            with self.owner.lock:
                data = answer(self.owner, variables, query)
        except writing.GraphqlError as error:
            self._answer(200, {"data": None, "errors": [{"message": str(error)}]})
        else:
            self._answer(200, {"data": data})

    def _file_stream(self, path: str, body: dict[str, Any]) -> None:
        _, _, *names, _ = path.split("/")
        with self.owner.lock:
            run = self.owner.find(*map(unquote, names))
            if run:
                run.take(body)
        if run is None:
            self._answer(404, {"error": "run not found"})
        else:
            self._answer(200, {"limits": {}, **({"stopped": True} if run.stopped else {})})

    def _stored(self) -> tuple[Any, str]:
        parts = unquote(urlsplit(self.path).path).split("/", 5)
        if len(parts) < 6 or parts[1] != "storage":
            return None, ""
        return self.owner.find(*parts[2:5]), parts[5]

    def _logged_in(self) -> bool:
        wanted = self.owner.api_key
        if wanted is None:
            return True
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        key = base64.b64decode(given).decode().partition(":")[2] if scheme == "Basic" else given
        if key != wanted:
            self._answer(401, {"errors": [{"message": "user is not logged in"}]})
        return key == wanted

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body

    def _answer(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _ill(self, kinds: set[str], name: str) -> bool:
        """Notes the request; lets a fault answer it if one meets it (True)."""
        fault = self.owner.fault_of(kinds)
        self.owner.requests.append((time.time(), name, fault.kind if fault else None))
        return fault is not None and self._suffer(fault)

    def _suffer(self, fault: Fault) -> bool:
        closing = self.owner.closing
        if fault.kind == "slow":
            closing.wait(fault.delay)
            return False
        if fault.kind == "status":
            wait = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
            self._answer(fault.status, {"errors": [{"message": "planted"}]}, wait)
        elif fault.kind == "malformed":
            self._answer(200, b'{"data": {"viewer": {')
        elif fault.kind == "graphql_error":
            self._answer(200, {"data": None, "errors": [{"message": "planted"}]})
        else:
            self.close_connection = True
        if fault.kind == "hang":
            closing.wait()
        elif fault.kind == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        elif fault.kind == "trickle":
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            while not closing.wait(1):
                self.wfile.write(b" ")
                self.wfile.flush()
        return True
