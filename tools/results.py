"""The one shape of every result, and what is left of one that is too long."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from rl_cli.core.cuts import ends
from rl_cli.core.errors import BadUsage, Refused, RlCliError
from rl_cli.core.extras import explain_missing_module
from rl_cli.core.files import write_atomic
from rl_cli.core.json_text import plain, to_json
from rl_cli.core.redaction import redact
from tools.spec import ToolError

SMALLEST = 600
"""No result is cut shorter than this, whatever the limit."""
SHORTEST = 80
"""No text inside a result is cut shorter than this."""


def success(value: Any) -> dict[str, Any]:
    """`{"ok": true, ...}` with a dict's own keys, or anything else under "result".

    A dict that says `"ok": false` itself becomes a failure.
    """
    if value is None:
        return {"ok": True}
    value = plain(value)
    if not isinstance(value, dict):
        return {"ok": True, "result": value}
    if value.get("ok", True) is not True:
        error = value.get("error")
        if isinstance(error, dict) and {"type", "message"} <= error.keys():
            return {"ok": False, "error": error}
        rest = error if error is not None else {k: v for k, v in value.items() if k != "ok"}
        return failure("failed", rest if isinstance(rest, str) else to_json(rest))
    return {"ok": True, **value}


def failure(type: str, message: str, hint: str | None = None) -> dict[str, Any]:
    """`{"ok": false, "error": {"type", "message", "hint"?}}`."""
    error = {"type": type, "message": message}
    return {"ok": False, "error": error | {"hint": hint} if hint else error}


def failure_of(error: BaseException) -> dict[str, Any]:
    """The failure that stands for an exception of a tool."""
    if isinstance(error, ModuleNotFoundError):
        error = explain_missing_module(error) or error
    if isinstance(error, ToolError):
        return failure(error.type, error.message, error.hint)
    if isinstance(error, RlCliError):
        kind = (
            "bad_usage"
            if isinstance(error, BadUsage)
            else "refused"
            if isinstance(error, Refused)
            else "failed"
        )
        return failure(kind, error.message, error.hint)
    try:
        text = str(error)
    except Exception:  # a broken __str__ must not hide the error
        text = "(its message cannot be shown)"
    return failure("internal_error", f"{type(error).__name__}: {text}" if text else type(error).__name__)


def as_text(result: dict[str, Any], limit: int, overflow_dir: Path | None, tool: str) -> str:
    """The result as JSON text of at most `limit` characters.

    A longer one keeps the head and the tail: of its longest texts if that is enough, else of the whole.
    The whole is written to a file in `overflow_dir`, which the result names under "truncated".
    """
    try:
        whole = to_json(result)
    except RecursionError:
        return to_json(
            failure("internal_error", "the tool's result is nested too deeply, or contains itself")
        )
    limit = max(limit, SMALLEST)
    if len(whole) <= limit:
        return whole
    note = {"characters": len(whole), "file": _keep(whole, overflow_dir, tool)}
    result = redact(result)  # before it is cut: of half a secret nothing is recognised
    if len(masked := _shortened(result, len(whole), note)) <= limit:
        return masked
    low, high = SHORTEST, len(whole)  # the longest texts may keep `low` characters, not `high`
    if len(_shortened(result, low, note)) > limit:
        return _ends_only(whole, limit, note, bool(result["ok"]))
    while high - low > max(8, low // 100):
        middle = (low + high) // 2
        low, high = (middle, high) if len(_shortened(result, middle, note)) <= limit else (low, middle)
    return _shortened(result, low, note)


def _shortened(result: dict[str, Any], keep: int, note: dict[str, Any]) -> str:
    def shorten(value: Any) -> Any:
        if isinstance(value, str):
            return ends(value, keep)
        if isinstance(value, dict):
            return {k: shorten(v) for k, v in value.items()}
        return [shorten(v) for v in value] if isinstance(value, list) else value

    return to_json({**shorten(result), "truncated": note})


def _ends_only(whole: str, limit: int, note: dict[str, Any], ok: bool) -> str:
    keep = limit
    while True:
        text = ends(whole, keep)
        cut = {"ok": True, "text": text} if ok else failure("failed", text)
        if len(as_json := to_json({**cut, "truncated": note})) <= limit or keep <= SHORTEST:
            return as_json
        keep = keep * 9 // 10


def _keep(whole: str, overflow_dir: Path | None, tool: str) -> str | None:
    if overflow_dir is None:
        return None
    path = overflow_dir / f"{tool}-{secrets.token_hex(4)}.json"
    try:
        overflow_dir.mkdir(parents=True, exist_ok=True)
        write_atomic(path, whole)
    except OSError:  # the ends are still worth having
        return None
    return str(path)
