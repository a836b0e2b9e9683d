"""The wire server's HTTP: one thread per connection, answers sent whole, streamed, or broken on purpose."""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.wire import anthropic_wire, openai_wire
from tests.wire.replies import Answer, Fault, Raw, Refusal, Reply

if TYPE_CHECKING:
    from tests.wire.server import Request, WireServer

_SSE = {
    "content-type": "text/event-stream; charset=utf-8",
    "transfer-encoding": "chunked",
    "cache-control": "no-cache",
}


class HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[Handler], wire: WireServer) -> None:
        super().__init__(address, handler)
        self.wire = wire

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is gone is no error; anything else is one of ours and is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: HttpServer

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        wire = self.server.wire
        if self.path.partition("?")[0] == "/v1/models":
            api: Any = anthropic_wire if "anthropic-version" in self.headers else openai_wire
            self._send_json(200, api.models(wire.models or ["test-model"]), {})
        elif self.path == "/state":
            self._send_json(200, {"requests": len(wire.requests), "violations": wire.violations}, {})
        else:
            self._send_json(404, {"error": {"message": f"Invalid URL (GET {self.path})"}}, {})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        apis = {"/v1/chat/completions": "openai", "/v1/messages": "anthropic"}
        if path not in apis:
            text = f"Invalid URL (POST {path})"
            self._send_json(404, {"error": {"message": text, "type": "invalid_request_error"}}, {})
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        request, answer = self.server.wire.record(apis[path], path, headers, raw)
        try:
            self._answer(request, answer)
        except (BrokenPipeError, ConnectionResetError):
            request.gone = True
            self.close_connection = True

    def _answer(self, request: Request, answer: Answer) -> None:
        api: Any = anthropic_wire if request.api == "anthropic" else openai_wire
        match answer:
            case Refusal():
                self._pause(answer.delay)
                body = api.error_body(answer, request.number) if answer.body is None else answer.body
                headers = api.headers(request.number) | answer.headers
                if isinstance(body, str):
                    self._send(answer.status, body.encode(), headers, "text/html")
                else:
                    self._send_json(answer.status, body, headers)
            case Raw():
                self._send_raw(answer, api.headers(request.number) | answer.headers)
            case Reply():
                self._reply(request, self.server.wire.finished(request, answer), api)

    def _reply(self, request: Request, reply: Reply, api: Any) -> None:
        self._pause(reply.delay)
        fault, headers = reply.fault, api.headers(request.number) | reply.headers
        if fault and fault.after is None:
            self._fail(request, fault, api)
            return
        if not request.body.get("stream"):
            body = json.dumps(api.body(reply, request.body, request.number), ensure_ascii=False).encode()
            if fault:
                self._head(
                    200, headers | {"content-length": str(len(body)), "content-type": "application/json"}
                )
                self.wfile.write(body[: len(body) // 2])
                self._fail(request, fault, api)
            else:
                self._send(200, body, headers, "application/json")
            return
        self._head(200, headers | _SSE)
        events = api.events(reply, request.body, request.number)
        stop = len(events)
        if fault and fault.after is not None:
            stop = min(stop, fault.after) if fault.after >= 0 else max(0, stop + fault.after)
        gap = reply.gap or 1 / (self.server.wire.tokens_per_second or 1e9)
        self._stream(events[:stop], gap)
        if fault and not self._fail(request, fault, api):
            return
        self._stream(events[stop:], gap)
        self.wfile.write(b"0\r\n\r\n")

    def _stream(self, events: list[bytes], gap: float) -> None:
        for event in events:
            self._chunk(event)
            if gap > 1e-4:
                self._pause(gap)

    def _fail(self, request: Request, fault: Fault, api: Any) -> bool:
        """Returns whether the reply goes on."""
        if fault.kind == "garbage":
            self._chunk(b'data: {"choices": [{"delta": {"con\n\n')
            return True
        self.close_connection = True
        if fault.kind == "error":
            refusal = fault.refusal or Refusal(500, "The server had an error")
            self._chunk(api.error_event(refusal, request.number))
            self.wfile.write(b"0\r\n\r\n")
        elif fault.kind == "end":
            self.wfile.write(b"0\r\n\r\n")
        elif fault.kind == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        elif fault.kind == "hang":
            while not self.server.wire.stopping.wait(0.01) and not self._client_left():
                pass
            request.gone = True
        return False

    def _client_left(self) -> bool:
        ready, _, _ = select.select([self.connection], [], [], 0)
        return bool(ready) and not self.connection.recv(1, socket.MSG_PEEK)

    def _pause(self, seconds: float) -> None:
        """Not longer than the client stays."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.server.wire.stopping.wait(min(left, 0.05)) or self._client_left():
                raise BrokenPipeError

    def _send_raw(self, raw: Raw, headers: dict[str, str]) -> None:
        size = raw.write_size or len(raw.body) or 1
        self._head(raw.status, headers | _SSE | {"content-type": raw.content_type})
        for start in range(0, len(raw.body), size):
            self._chunk(raw.body[start : start + size])
        if raw.cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _send_json(self, status: int, body: Any, headers: dict[str, str]) -> None:
        self._send(status, json.dumps(body, ensure_ascii=False).encode(), headers, "application/json")

    def _send(self, status: int, body: bytes, headers: dict[str, str], content_type: str) -> None:
        self._head(status, {"content-type": content_type, "content-length": str(len(body))} | headers)
        self.wfile.write(body)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
