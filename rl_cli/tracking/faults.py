"""What an exception of the wandb SDK means. Runs in the child that uses the SDK (see `answers`).

The SDK's types do not tell: the constructor of `Api` raises AuthenticationError for every failure, and a
server that hangs and one that asks to be left alone both are "busy and did not respond in time". Causes,
statuses and messages tell, and where they do not, one bare request does.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import urllib.parse
from collections.abc import Iterator
from typing import Any

PROBE_SECONDS = 2.0


class Fault(Exception):
    """What is to be told: `kind` and message as in `rl_cli.tracking.errors.WandbError`."""

    def __init__(self, kind: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.kind, self.message, self.hint = kind, message, hint

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "message": self.message, "hint": self.hint}


def fault_of(error: BaseException, base_url: str, api_key: str | None) -> dict[str, Any]:
    """{"kind", "message", "hint", "retry_after"?} for whatever was raised.

    Args:
        error: The exception.
        base_url: The server that was asked.
        api_key: The key, for the one request that tells a busy server from one that hangs; not in the answer.
    """
    chain = list(_chain(error))
    known = next((one for one in chain if isinstance(one, Fault)), None)
    if known:
        return known.to_dict()
    names = {type(one).__name__ for one in chain}
    text = " ".join(str(chain[-1]).split())
    if isinstance(error, ModuleNotFoundError):
        return Fault("not_installed", f"W&B's package is not installed: {error}").to_dict()
    if "UsageError" in names and "key" in text.lower():
        return Fault("no_key", "no W&B key was found").to_dict()
    if "AuthenticationError" in names and len(chain) == 1:
        return Fault("wrong_key", f"the W&B key cannot be right: {_without(text, api_key)}").to_dict()
    if "RunNotFoundError" in names:
        return Fault("not_found", _without(text, api_key)).to_dict()
    if "WandbApiFailedError" in names:
        failed = next(one for one in chain if type(one).__name__ == "WandbApiFailedError")
        return _of_request(failed, base_url, api_key)
    if isinstance(error, OSError):
        return Fault("down", f"W&B's own service could not be used: {text}").to_dict()
    return Fault(
        "bad_answer", f"W&B's answer cannot be read ({type(error).__name__}: {text[:150]})"
    ).to_dict()


def _of_request(error: Any, base_url: str, api_key: str | None) -> dict[str, Any]:
    text = _without(" ".join(str(error).split()), api_key)
    response = getattr(error, "response", None)
    status = getattr(response, "http_status", 0) or _status_in(text)
    if status:
        return _of_status(status, base_url, text)
    if response is None:
        return _of_silence(base_url, api_key)
    lowered = text.lower()
    if "deadline exceeded" in lowered or "timeout" in lowered:
        return Fault("slow", f"W&B at {base_url} began to answer and did not finish").to_dict()
    if "giving up" in lowered or "dial tcp" in lowered:
        cause = text.rsplit(": ", 1)[-1] if ": " in text else text
        return Fault("down", f"W&B at {base_url} cannot be reached: {cause[:150]}").to_dict()
    if lowered.startswith("input:"):  # how wandb-core begins the errors that GraphQL answers with
        said = text.removeprefix("input:").strip()
        kind = "not_found" if "not found" in lowered else "refused"
        return Fault(kind, f"W&B says: {said[:200]}").to_dict()
    return Fault("bad_answer", f"W&B's answer cannot be read: {text[:150]}").to_dict()


def _of_status(status: int, base_url: str, text: str, retry_after: float | None = None) -> dict[str, Any]:
    if status == 401:
        return Fault("wrong_key", f"W&B at {base_url} does not accept the key (401)").to_dict()
    if status == 403:
        return Fault("forbidden", f"W&B at {base_url} does not allow this with the key (403)").to_dict()
    if status == 404:
        hint = "check WANDB_BASE_URL"
        return Fault("not_found", f"{base_url} has no such thing as W&B's GraphQL (404)", hint).to_dict()
    if status == 429:
        when = f"in {retry_after:g} s" if retry_after else "in a few minutes"
        message = f"W&B is asked too often (429): try again {when}"
        return {**Fault("rate_limited", message, "ask less often").to_dict(), "retry_after": retry_after}
    if status >= 500:
        return Fault("down", f"W&B at {base_url} answers with error {status}").to_dict()
    return Fault("bad_answer", f"W&B at {base_url} answers with {status}: {text[:100]}").to_dict()


def _of_silence(base_url: str, api_key: str | None) -> dict[str, Any]:
    """Asks once, without the SDK, why it did not answer: the SDK waits where it was asked to wait."""
    url = urllib.parse.urlsplit(base_url)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    headers = {"Content-Type": "application/json"}
    if api_key:
        headers["Authorization"] = "Basic " + base64.b64encode(f"api:{api_key}".encode()).decode()
    connection = kind(url.hostname or "", url.port, timeout=PROBE_SECONDS)
    try:
        body = json.dumps({"query": "query Viewer { viewer { id } }", "operationName": "Viewer"})
        connection.request("POST", f"{url.path.rstrip('/')}/graphql", body, headers)
        answer = connection.getresponse()
        wait = answer.getheader("Retry-After", "")
        if answer.status != 200:
            return _of_status(answer.status, base_url, "", float(wait) if wait.isdigit() else None)
    except TimeoutError:
        pass
    except (socket.gaierror, OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return Fault("down", f"W&B at {base_url} cannot be reached: {reason}").to_dict()
    finally:
        connection.close()
    return Fault("slow", f"W&B at {base_url} did not answer in time").to_dict()


def _status_in(text: str) -> int:
    found = re.search(r"(?:HTTP|error) (\d{3})\b", text)
    return int(found.group(1)) if found else 0


def _without(text: str, api_key: str | None) -> str:
    return text.replace(api_key, "[key]") if api_key else text


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and what it came from, outermost first."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = getattr(one, "exc", None) or one.__cause__
