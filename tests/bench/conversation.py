"""How fast a conversation is: `python -P -m tests.bench.conversation`.

The first request, beside a bare Python that only imports the same SDK; how long each streamed token takes
from the server's write to a terminal's screen. Runs take turns.
"""

from __future__ import annotations

import json
import os
import pty
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.e2e.cli import command

ROUNDS = 7
TOKENS = 60
GAP_SECONDS = 0.03
STAMP = re.compile(rb"<(\d+\.\d+)>")


class Clock(BaseHTTPRequestHandler):
    """Answers every chat request with the time at which each token leaves."""

    def do_POST(self) -> None:
        self.server.asked.append(time.monotonic())  # type: ignore[attr-defined]
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        events = anthropic_events() if "messages" in self.path else openai_events()
        for event in events:
            self.wfile.write(event)
            self.wfile.flush()
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


def stamps() -> Iterator[str]:
    for _ in range(TOKENS):
        time.sleep(GAP_SECONDS)
        yield f"<{time.monotonic():.5f}> "


def openai_events() -> Iterator[bytes]:
    def chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        return b"data: " + json.dumps(body).encode() + b"\n\n"

    yield chunk({"role": "assistant", "content": ""})
    yield from (chunk({"content": text}) for text in stamps())
    yield chunk({}, "stop") + b"data: [DONE]\n\n"


def anthropic_events() -> Iterator[bytes]:
    def event(kind: str, **fields: object) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()

    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
    counts = {"input_tokens": 1, "output_tokens": 1}
    yield event("message_start", message={**message, "usage": counts})
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for text in stamps():
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
    yield event("content_block_stop", index=0)
    yield event("message_delta", delta={"stop_reason": "end_turn"}, usage=counts) + event("message_stop")


@contextmanager
def clock_server() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Clock)
    server.asked = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()


def one_conversation(server: ThreadingHTTPServer, provider: str) -> tuple[float, list[float]]:
    """Seconds from the command's start to its request, and from each token's leaving to the screen."""
    url = f"http://127.0.0.1:{server.server_address[1]}" + ("/v1" if provider == "openai" else "")
    ours, theirs = pty.openpty()
    server.asked.clear()  # type: ignore[attr-defined]
    started = time.monotonic()
    process = subprocess.Popen(
        command("ask", "hello", "there", "--model", f"{provider}/m", "--base-url", url),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm"},
    )
    os.close(theirs)
    late, seen = [], b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        now = time.monotonic()
        if not piece:
            break
        seen += piece
        *whole, seen = re.split(rb"(?<=>)", seen)
        late += [now - float(match[1]) for text in whole if (match := STAMP.search(text))]
    os.close(ours)
    process.wait()
    if len(late) != TOKENS:
        raise SystemExit(f"{provider}: {len(late)} of {TOKENS} tokens were seen; the rest: {seen[-500:]!r}")
    return server.asked[0] - started, late  # type: ignore[attr-defined]


def seconds_to_import(module: str) -> float:
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    return time.monotonic() - started


def main() -> None:
    with clock_server() as server:
        for provider in ("openai", "anthropic"):
            imports, firsts, late = [], [], []
            for round_ in range(ROUNDS + 1):
                bare = seconds_to_import(provider)
                first, latencies = one_conversation(server, provider)
                if round_:  # the first warms the caches
                    imports.append(bare)
                    firsts.append(first)
                    late += latencies
            bare, first = statistics.median(imports), statistics.median(firsts)
            late.sort()
            middle, most, longest = (1000 * late[int(len(late) * share)] for share in (0.5, 0.99, 0.99999))
            print(
                f"{provider}: first request after {first:.3f} s, importing the SDK alone {bare:.3f} s, "
                f"more {first - bare:+.3f} s (medians); "
                f"token to screen: median {middle:.1f} ms, 99 % {most:.1f} ms, longest {longest:.1f} ms"
            )


if __name__ == "__main__":
    main()
