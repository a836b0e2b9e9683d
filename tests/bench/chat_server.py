"""A chat endpoint that costs little: `python -P -m tests.bench.chat_server DELAY_SECONDS`.

Each conversation gets a call of `terminal`, and an answer once that has its result. It prints its address,
and how many requests it had when its standard input ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "terminal", "arguments": '{"command": "echo ok"}'},
}


class Server:
    """Answers in one piece or as events, as it is asked."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self.times: list[float] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.times.append(time.time())
                lines = head.decode("latin1").lower().split("\r\n")
                size = next((int(line[15:]) for line in lines if line.startswith("content-length:")), 0)
                body = json.loads(await reader.readexactly(size))
                await asyncio.sleep(self.delay)
                payload, kind = answer(body)
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n%b"
                    % (kind, len(payload), payload)
                )
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def answer(body: dict[str, Any]) -> tuple[bytes, bytes]:
    """The body of the answer, and its content type."""
    done = body["messages"][-1]["role"] == "tool"
    message: dict[str, Any] = {"role": "assistant", "reasoning_content": "I think."}
    message |= {"content": "done"} if done else {"content": None, "tool_calls": [CALL]}
    finish = "stop" if done else "tool_calls"
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    base = {"id": "c", "created": 1, "model": body["model"]}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": finish}
        whole = {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
        return json.dumps(whole).encode(), b"application/json"
    if not done:
        message["tool_calls"] = [{**CALL, "index": 0}]
    choice = {"index": 0, "delta": message, "finish_reason": finish}
    chunks: list[dict[str, Any]] = [{"choices": [choice]}, {"choices": [], "usage": usage}]
    events = [json.dumps({**base, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
    return "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode(), b"text/event-stream"


async def main(delay: float) -> None:
    server = Server(delay)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=2**26, backlog=512)
    print(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    print(json.dumps({"requests": len(server.times), "first": min(server.times, default=None)}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
