"""What a server says about a request that it did not answer, whichever of the many forms it says it in."""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rl_cli.core.cuts import head

STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "server_error": 500,
    "internal_server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""For errors that come inside a stream, which began with status 200."""

_TRY_AGAIN_IN = re.compile(r"try again in ((?:\d+(?:\.\d+)?(?:ms|h|m|s))+)", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)", re.IGNORECASE)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class ServerSaid:
    status: int = 0
    """Of HTTP, or the one that the error's type stands for; 0 where neither is known."""
    message: str = ""
    """Raw: it may name accounts."""
    code: str = ""
    """Code and type in one text, for looking things up in."""
    param: str = ""
    """The field that the server means."""
    wait_seconds: float | None = None
    """How long it asks to wait; negative for a date that is past."""
    may_retry: bool | None = None
    """What `x-should-retry` says."""

    @property
    def text(self) -> str:
        """Everything, in small letters, for looking things up in."""
        return f"{self.code} {self.param} {self.message}".casefold()


def read_said(body: Any, status: int = 0, headers: Mapping[str, str] | None = None) -> ServerSaid:
    """Reads an error body: decoded JSON of any form, text, or nothing."""
    headers = headers or {}
    error = body
    while isinstance(error, dict) and error.get("error"):
        error = error["error"]
    if not isinstance(error, dict):
        message = _message(error)
        return ServerSaid(status, message, "", "", asked_wait(headers, message), _flag(headers))
    message = _message(error.get("message") or error.get("detail") or error.get("msg"))
    raw = error.get("metadata")  # OpenRouter: what the provider behind it said
    if isinstance(raw, dict) and isinstance(raw.get("raw"), str):
        message = f"{message}: {raw['raw']}" if message else raw["raw"]
    code, kind = error.get("code"), error.get("type")
    if not 400 <= status < 600:
        number = int(str(code)) if str(code).isdecimal() else 0
        status = number if 400 <= number < 600 else STATUS_OF_TYPE.get(str(kind), 0)
    words = " ".join(str(word) for word in (code, kind, error.get("status")) if word)
    param = error.get("param")
    return ServerSaid(
        status,
        message,
        words,
        param if isinstance(param, str) else "",
        asked_wait(headers, message),
        _flag(headers),
    )


def asked_wait(headers: Mapping[str, str], message: str = "") -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, `retry-after` (seconds or an HTTP date), or
    "try again in 1m2.5s" in its message; None where it asks for nothing."""
    for header, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(header, "")) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return seconds
    if date := headers.get("retry-after"):
        try:
            return email.utils.parsedate_to_datetime(date).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    if found := _TRY_AGAIN_IN.search(message):
        seconds = sum(float(n) * _UNITS[unit.lower()] for n, unit in _PART.findall(found[1]))
        return seconds if math.isfinite(seconds) else None
    return None


def _message(value: Any) -> str:
    """The words for a person, without the request that some servers repeat in their errors."""
    if isinstance(value, str):
        return "" if value.lstrip().startswith("<") else value  # a proxy's page
    if isinstance(value, list):  # FastAPI: [{"loc": [...], "msg": ..., "input": the request}]
        return "; ".join(_item(item) for item in value[:5])
    if isinstance(value, dict):
        return _message(value.get("message") or value.get("msg") or head(json.dumps(value), 500))
    return "" if value is None else head(str(value), 500)


def _item(item: Any) -> str:
    if not isinstance(item, dict):
        return head(str(item), 200)
    where = ".".join(str(part) for part in item.get("loc", ()) if part != "body")
    return f"{where}: {item.get('msg', '')}" if where else str(item.get("msg", ""))


def _flag(headers: Mapping[str, str]) -> bool | None:
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").lower())
