"""What a session's records say was asked, done and started: the part of a summary that no model writes.

It is kept with each compaction and grows from one to the next, so that nothing is done twice because a model
forgot to mention it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.messages import Message

MOST_REQUESTS = 30
MOST_CHANGES = 15
"""The newest ones; what was executed or paid for is never left out."""
SHORTEST_LINE = 70
"""Characters."""
TELLING: tuple[str, ...] = ("run_id", "id", "name", "state", "environment", "profile", "backend", "step")
TELLING += ("file", "output", "changed")
"""Keys of a result that are worth a place, where their values are short."""


def add(digest: dict[str, Any], messages: list[Message], risks: Mapping[str, str]) -> dict[str, Any]:
    """The digest with `messages` taken in.

    Args:
        digest: An earlier one, or {}.
        messages: Well formed: each call is followed by its result.
        risks: Tool name -> risk; calls of unknown tools and those that only read are left out.

    Returns:
        {"requests": [{"asked", "answered"}], "done": [{"risk", "what"}], "runs": {run id: state}}
    """
    requests = [dict(request) for request in digest.get("requests", [])]
    done = list(digest.get("done", []))
    runs = dict(digest.get("runs", {}))
    results = {m.get("tool_call_id"): m["content"] or "" for m in messages if m["role"] == "tool"}
    for message in messages:
        text = message["content"] or ""
        if message["role"] == "user":
            asked = one_line(text, 400)
            if not requests or requests[-1]["asked"] != asked:  # it is, where a turn was divided before
                requests.append({"asked": asked, "answered": None})
        elif message["role"] == "assistant":
            if text and requests:
                requests[-1]["answered"] = one_line(text, 240)
            for call in message.get("tool_calls", []):
                name, result = call["function"]["name"], _read(results.get(call["id"], ""))
                runs |= _runs_in(result)
                if risks.get(name, "read") != "read":
                    what = f"{name}({one_line(call['function']['arguments'], 200)}): {_outcome(result)}"
                    done.append({"risk": risks[name], "what": what})
    changes = [row for row in done if row["risk"] == "write"]
    dropped = {id(row) for row in changes[:-MOST_CHANGES]}
    return {
        "requests": requests
        if len(requests) <= MOST_REQUESTS
        else requests[:1] + requests[1 - MOST_REQUESTS :],
        "done": [row for row in done if id(row) not in dropped],
        "runs": runs,
    }


def sound_digest(digest: Any) -> dict[str, Any]:
    """A digest as it was read from a file, without what `add` would not have put there."""
    digest = digest if isinstance(digest, dict) else {}
    requests, done, runs = (digest.get(key) for key in ("requests", "done", "runs"))
    return {
        "requests": [row for row in _list(requests) if _is_row(row, "asked", "answered")],
        "done": [row for row in _list(done) if _is_row(row, "risk", "what") and row["risk"] is not None],
        "runs": {k: v for k, v in runs.items() if isinstance(v, str)} if isinstance(runs, dict) else {},
    }


def as_texts(digest: dict[str, Any], longest: int | None = None) -> dict[str, str]:
    """The digest as the three lists of the prompt `summary`.

    Args:
        digest: As `add` makes it.
        longest: Characters of each list, roughly; its lines are shortened rather than left out.
    """
    requests = [
        f'- "{row["asked"]}" -> ' + (f'"{row["answered"]}"' if row["answered"] else "no answer yet")
        for row in digest.get("requests", [])
    ]
    done = [f"- {row['what']}" for row in digest.get("done", [])]
    runs = [f"- {run_id}: {state}" for run_id, state in digest.get("runs", {}).items()]
    lists = {"requests": requests, "done": done, "runs": runs}
    return {name: _listed(lines, longest) for name, lines in lists.items()}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_row(row: Any, text: str, second: str) -> bool:
    both = isinstance(row, dict) and text in row and second in row
    return both and isinstance(row[text], str) and isinstance(row[second], str | None)


def _listed(lines: list[str], longest: int | None) -> str:
    if longest is not None and sum(map(len, lines)) > longest:
        each = max(SHORTEST_LINE, longest // len(lines))
        lines = [x if len(x) <= each else f"{x[: each // 2]}…{x[-(each // 2 - 1) :]}" for x in lines]
    return "\n".join(lines) or "- none"


def _outcome(result: dict[str, Any]) -> str:
    if not result.get("ok"):
        error = result.get("error") if isinstance(result.get("error"), dict) else {}
        return one_line(f"{error.get('type', 'failed')}: {error.get('message', '')}", 200)  # type: ignore[union-attr]
    told = {key: result[key] for key in TELLING if key in result}
    return one_line("done" + "".join(f", {key} {_text(value)}" for key, value in told.items()), 300)


def _runs_in(result: dict[str, Any]) -> dict[str, str]:
    """The run that a result tells of, with its state as of then."""
    run = result.get("run") if isinstance(result.get("run"), dict) else result
    run_id = run.get("run_id") or run.get("id")  # type: ignore[union-attr]
    state = run.get("state")  # type: ignore[union-attr]
    return {run_id: state} if isinstance(run_id, str) and isinstance(state, str) else {}


def _read(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
