"""What an exception of an SDK means: try again, shorten the conversation, or tell the person what to do.

It serves the openai and the anthropic SDK, whose exceptions look alike, without importing either. What a
server says may name accounts or repeat keys and prompts: people are shown our own words, with at most a
cleaned and shortened piece of the server's.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit

from environments.policies.base import ContextOverflow, PolicyError, Throttled
from environments.policies.endpoints.attempts import Failure
from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.endpoints.server_said import ServerSaid, read_said
from rl_cli.core.redaction import redact_text

SHOWN = 200
"""Characters of what the server says that a person is shown."""
OWN_HOSTS = {
    "openai": ("api.openai.com",),
    "anthropic": ("api.anthropic.com",),
    "openrouter": ("openrouter.ai",),
}
ANOTHER = "choose another with --model provider/name"

_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|context_window_exceeded|string_above_max_length"
    r"|maximum context length|context length is only|maximum model length|model's context length"
    r"|exceeds? (?:the |your |this |model'?s? |available |maximum |allowed |max )*context|context limit"
    r"|context window (?:is |was )?(?:exceeded|exceeds)|exceeds? [^.]{0,40}context (?:window|size|length)"
    r"|prompt (?:is )?too long|too long to fit|input is too long|input (?:is )?longer than"
    r"|maximum prompt length|input token count|too many input tokens|inputs? tokens? \+ `?max_new_tokens"
    r"|larger than the (?:context|max)|reduce (?:the|your) (?:length|prompt|input)|too large for model"
    r"|context size (?:has been |is |was )?exceeded|request too large for"
)
_QUOTA = re.compile(
    r"insufficient_quota|billing_hard_limit|billing_not_active|credit balance|insufficient credits"
    r"|insufficient balance|exceeded your current quota|requires more credits|payment required"
)
_TEMPLATE = re.compile(
    r"roles? must alternate|must alternate|alternate user|system role (?:is )?not supported"
    r"|jinja|chat template|template error|--jinja|raise_exception|cannot pass both"
)
_RETRY_STATUS = frozenset({408, 409, 425, 429, 499})
_THROTTLED = frozenset({429, 503, 529})
_MAYBE_BILLED = frozenset({408, 499, 502, 504, 524})
"""Whoever answered had waited for a server that may have done the work."""

_NEVER_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"})
_UNUSABLE = frozenset({"UnsupportedProtocol", "InvalidURL", "LocalProtocolError"})
_ACCOUNT = re.compile(
    r"\b(?:org|proj|user|req|acct|ws|wrkspc)[-_][A-Za-z0-9]{6,}|\b(?:sk|pk|rk)[-_][\w*.-]*[\w*]",
    re.IGNORECASE,
)


class CutStream(Exception):
    """The answer ended before it was complete, or was no answer at all."""


class StreamedError(Exception):
    """The server reported an error where an answer, or a part of it, should stand.

    Args:
        body: The error as it was sent, decoded.
    """

    def __init__(self, body: Any) -> None:
        super().__init__("the server reported an error")
        self.body = body


class Refusal(PolicyError):
    """The server does not take this request as it is: a 4xx, or a template that cannot render it."""

    def __init__(self, message: str, said: ServerSaid | None = None) -> None:
        super().__init__(message)
        self.said = said or ServerSaid()


def classify(error: Exception, endpoint: Endpoint) -> Failure | None:
    """What an exception of a request means; None where it is not about the endpoint (a bug of ours)."""
    told = next((e for e in (error, error.__cause__) if isinstance(e, PolicyError)), None)
    if told is not None:  # our own words; an SDK may have wrapped them
        return Failure(told, billed=not isinstance(told, Refusal))
    if isinstance(error, CutStream | json.JSONDecodeError | UnicodeDecodeError):
        reason = str(error) if isinstance(error, CutStream) else "it is not what an answer looks like"
        return _failed(f"the answer of {_who(endpoint)} was lost: {reason}", retry=True, billed=True)
    if isinstance(error, StreamedError):
        return _of_answer(read_said(error.body), endpoint, streamed=True)
    status, response = getattr(error, "status_code", None), getattr(error, "response", None)
    if isinstance(status, int):
        streamed = status < 400
        said = read_said(getattr(error, "body", None), status, getattr(response, "headers", None))
        return _of_answer(said, endpoint, streamed)
    if (found := _of_connection(error, endpoint)) is not None:
        return found
    if hasattr(error, "body") and hasattr(error, "request"):  # an error that the SDK read from the stream
        return _of_answer(read_said(error.body), endpoint, streamed=True)
    return None


def cleaned(text: str) -> str:
    """At most 200 characters of a server's words, in one line, without secrets and accounts."""
    text = " ".join(redact_text(text).split())
    text = _ACCOUNT.sub("[account]", text)
    text = "".join(c for c in text if c.isprintable())
    return text if len(text) <= SHOWN else text[: SHOWN - 3].rstrip() + "..."


def _of_answer(said: ServerSaid, endpoint: Endpoint, streamed: bool) -> Failure:
    status, text, who = said.status, said.text, _who(endpoint)
    overflow = bool(_OVERFLOW.search(text)) and (status != 429 or "request too large for" in text)
    if overflow or status == 413:
        message = f"the conversation is longer than {endpoint.name} takes{_says(said)}"
        return Failure(ContextOverflow(message), billed=streamed)
    if status == 401:
        hint = f"check {endpoint.key_name}" if endpoint.api_key else f"it wants one: set {endpoint.key_name}"
        return _refused(f"{who} refused the key: {hint}", said, streamed)
    if status == 402 or (_QUOTA.search(text) and not _passes(said)):
        hint = "add credit at the provider, or choose another model with --model provider/name"
        return _refused(f"the account at {who} has no quota or credit left: {hint}", said, streamed)
    if status == 404 or "model_not_found" in text or "not a valid model" in text:
        return _refused(_not_found(said, endpoint), said, streamed)
    if _TEMPLATE.search(text):
        return _refused(
            f"the chat template of {endpoint.name} refuses the messages{_says(said)}", said, streamed
        )
    if status == 403:
        return _refused(f"{who} does not allow this{_says(said)}; {ANOTHER}", said, streamed)
    if status in _RETRY_STATUS or status >= 500 or status == 0:
        billed = streamed or status in _MAYBE_BILLED
        retry = said.may_retry is not False
        kind = Throttled if status in _THROTTLED else PolicyError
        return Failure(kind(f"{_trouble(status, who)}{_says(said)}"), retry, said.wait_seconds, billed)
    return _refused(f"{endpoint.name} refused the request ({status}){_says(said)}", said, streamed)


def _of_connection(error: Exception, endpoint: Endpoint) -> Failure | None:
    kinds = {k.__name__ for e in (error, error.__cause__) if e is not None for k in type(e).__mro__}
    place = _place(endpoint)
    if kinds & _UNUSABLE:
        return _failed(f"{place} is not an address that can be used: check base_url", False, billed=False)
    if kinds & _NEVER_SENT:
        running = "is the server running?" if endpoint.is_loopback else "is the network up?"
        return _failed(f"cannot connect to {place}: {running}", True, billed=False)
    if kinds & {"APITimeoutError", "TimeoutException"}:
        return _failed(f"{place} did not answer in time", True, billed=True)
    if kinds & {"APIConnectionError", "TransportError", "RequestError", "StreamError"}:
        return _failed(f"the connection to {place} was lost", True, billed=True)
    return None


def _not_found(said: ServerSaid, endpoint: Endpoint) -> str:
    if "model" not in said.text and endpoint.model.casefold() not in said.text:
        end = " (most end in /v1)" if endpoint.base_url else ""
        return f"there is no chat endpoint at {_place(endpoint)}: check base_url{end}"
    get = f"get it with `ollama pull {endpoint.model}`, or " if endpoint.provider == "ollama" else ""
    return f"{_who(endpoint)} has no model '{endpoint.model}' for you: {get}{ANOTHER}"


def _passes(said: ServerSaid) -> bool:
    """Whether the quota is one per minute: the server says when to come back."""
    return said.wait_seconds is not None and "insufficient_quota" not in said.code


def _trouble(status: int, who: str) -> str:
    if status == 429:
        return f"{who} allows no more requests for now"
    if status in (503, 529):
        return f"{who} is overloaded"
    return f"{who} failed ({status})" if status else f"{who} failed"


def _says(said: ServerSaid) -> str:
    words = cleaned(said.message)
    return f': it says "{words}"' if words else ""


def _who(endpoint: Endpoint) -> str:
    """A provider that is asked at another address than its own is not who answers."""
    host = urlsplit(endpoint.base_url or "").hostname
    own = host is None or endpoint.provider not in OWN_HOSTS or host in OWN_HOSTS[endpoint.provider]
    return endpoint.provider if own else _place(endpoint)


def _place(endpoint: Endpoint) -> str:
    parts = urlsplit(endpoint.base_url or "")
    return parts.netloc.rpartition("@")[2] or endpoint.base_url or endpoint.provider


def _refused(message: str, said: ServerSaid, billed: bool) -> Failure:
    return Failure(Refusal(message, said), billed=billed)


def _failed(message: str, retry: bool, billed: bool, wait: float | None = None) -> Failure:
    return Failure(PolicyError(message), retry, wait, billed)
