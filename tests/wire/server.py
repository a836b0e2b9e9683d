"""A local HTTP server that speaks Chat Completions and Messages as the real ones do.

It answers what a test says, records every request, and holds each against the SDK's own types and the rules
of the real servers: what does not fit is in `violations`, and is answered with 400 as they would. Loopback
only, any number of connections at once. As a program: `python -m tests.wire.server --script FILE` prints
where it listens.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.wire import anthropic_rules, anthropic_wire, openai_rules, openai_wire
from tests.wire.handler import Handler, HttpServer
from tests.wire.prompt_cache import PromptCache
from tests.wire.replies import Answer, Call, Fault, Raw, Refusal, Reply, Tokens

__all__ = ["Answer", "Call", "Fault", "Raw", "Refusal", "Reply", "Request", "Tokens", "WireServer"]


@dataclass
class Request:
    """What a client sent."""

    number: int
    """From 0, over all connections."""
    api: str
    """`openai` or `anthropic`."""
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: dict[str, Any]
    at: float
    """When it came, on the clock of time.monotonic()."""
    violations: list[str] = field(default_factory=list)
    gone: bool = False
    """The client closed the connection before it had everything."""


Script = Iterable[Answer] | Callable[[Request], Answer]


class WireServer:
    """Use it with `with`.

    Args:
        script: The answers in order, or a function of the request.
        strict: Answer 400 where a request breaks a rule (else only note it).
        allowed: Request fields that this server knows beyond the SDK's types.
        alternate: Chat Completions whose template wants user and assistant in turn (answers 400 else).
        key: Answer 401 to any other key.
        models: Answer 404 to any other model.
        tokens_per_second: Deltas per second of streamed replies; None: as fast as it goes.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        strict: bool = True,
        allowed: Iterable[str] = (),
        alternate: bool = False,
        key: str | None = None,
        models: list[str] | None = None,
        tokens_per_second: float | None = None,
        port: int = 0,
    ) -> None:
        self.requests: list[Request] = []
        self.strict = strict
        self.allowed = frozenset(allowed)
        self.alternate = alternate
        self.key = key
        self.models = models
        self.tokens_per_second = tokens_per_second
        self.stopping = threading.Event()
        self.served: dict[str, list[dict[str, Any]]] = {}
        """Thinking blocks that were sent together with each tool_use id."""
        self._cache = PromptCache()
        self._lock = threading.Lock()
        self._script = script if callable(script) else None
        self._left: list[Answer] = [] if callable(script) else list(script)
        self._http = HttpServer(("127.0.0.1", port), Handler, self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> WireServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """For the OpenAI SDK's base_url."""
        return self.root + "/v1"

    @property
    def anthropic_url(self) -> str:
        """For the Anthropic SDK's base_url."""
        return self.root

    @property
    def violations(self) -> list[str]:
        """Every broken rule so far, as `request NUMBER: what`."""
        return [f"request {r.number}: {v}" for r in self.requests for v in r.violations]

    def say(self, *answers: Answer) -> None:
        """Adds answers to the script."""
        with self._lock:
            self._left += answers

    def set(self, script: Callable[[Request], Answer] | Iterable[Answer]) -> None:
        """Answers from now on by `script`."""
        with self._lock:
            self._script = script if callable(script) else None
            self._left = [] if callable(script) else list(script)

    def record(self, api: str, path: str, headers: dict[str, str], raw: bytes) -> tuple[Request, Answer]:
        """Notes a request and says what it gets."""
        body, problem = _decode(raw)
        with self._lock:
            request = Request(len(self.requests), api, path, headers, body, time.monotonic())
            self.requests.append(request)
        if problem:
            request.violations.append(problem)
            return request, Refusal(400, f"We could not parse the JSON body of your request: {problem}")
        if refusal := self._gate(request):
            return request, refusal
        request.violations += self._check(request)
        if request.violations and self.strict:
            return request, Refusal(400, request.violations[0])
        if self._script:
            return request, self._script(request)
        with self._lock:
            if self._left:
                return request, self._left.pop(0)
        request.violations.append("the script has no answer left")
        return request, Refusal(400, "the script has no answer left")

    def _gate(self, request: Request) -> Refusal | None:
        """Refusals that come before the request is looked at; not the client's fault."""
        sent = request.headers.get("x-api-key") or request.headers.get("authorization", "")
        if self.key is not None and sent.removeprefix("Bearer ") != self.key:
            text = "invalid x-api-key" if request.api == "anthropic" else "Incorrect API key provided."
            return Refusal(401, text, code="invalid_api_key")
        model = request.body.get("model")
        if self.models is not None and model not in self.models:
            text = f"The model `{model}` does not exist or you do not have access to it."
            return Refusal(
                404, f"model: {model}" if request.api == "anthropic" else text, code="model_not_found"
            )
        if self.alternate and not _alternates(request.body.get("messages", [])):
            text = "Conversation roles must alternate user/assistant/user/assistant/..."
            return Refusal(400, text, "BadRequestError")
        return None

    def _check(self, request: Request) -> list[str]:
        if request.api == "openai":
            return openai_rules.violations(request.body, self.allowed)
        missing = [] if "anthropic-version" in request.headers else ["header anthropic-version: missing"]
        return missing + anthropic_rules.violations(request.body, self.served, self.allowed)

    def finished(self, request: Request, reply: Reply) -> Reply:
        """The reply with what it used; notes what the client has to send back with it."""
        if request.api == "anthropic":
            blocks = anthropic_wire.blocks(reply, request.number)
            thoughts = [block for block in blocks if block["type"] in anthropic_rules.THINKING]
            self.served |= {block["id"]: thoughts for block in blocks if block["type"] == "tool_use"}
        with self._lock:
            used = self._cache.count(request.api, request.body, openai_wire.output_of(reply))
        return reply if reply.usage else replace(reply, usage=used)


def _decode(raw: bytes) -> tuple[dict[str, Any], str | None]:
    """The body, and why it is no request at all."""
    try:
        text = raw.decode("utf-8")
        body = json.loads(text, parse_constant=_no_constant)
        if not isinstance(body, dict):
            return {}, "the body is not an object"
        json.dumps(body, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return {}, "the body holds a lone surrogate"
    except ValueError as error:
        return {}, str(error)
    return body, None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _alternates(messages: list[dict[str, Any]]) -> bool:
    """As many chat templates check it: without system and tool messages, and calls of tools."""
    roles = [
        m["role"]
        for m in messages
        if m["role"] == "user" or (m["role"] == "assistant" and not m.get("tool_calls"))
    ]
    return all(role == ("user", "assistant")[number % 2] for number, role in enumerate(roles))


def main(words: list[str]) -> None:
    from tests.wire.script import play

    parser = argparse.ArgumentParser(prog="python -m tests.wire.server")
    parser.add_argument("--script", required=True, help="YAML file, as for scripted/FILE")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tokens-per-second", type=float)
    asked = parser.parse_args(words)
    with WireServer(play(asked.script), port=asked.port, tokens_per_second=asked.tokens_per_second) as server:
        print(server.root, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
