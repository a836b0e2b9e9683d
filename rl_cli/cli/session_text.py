"""A session's file in the forms in which it is read elsewhere: text, Markdown, a row of data."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rl_cli.agent.history import History
from rl_cli.agent.session_file import read_events
from rl_cli.cli.event_lines import call_line, result_line
from rl_cli.core.messages import Message, system


def as_text(events: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The conversation as the terminal showed it, line by line."""
    for event in events:
        kind, message = event.get("kind"), event.get("message")
        if kind == "session":
            yield f"session {event.get('id')}, begun {event.get('time')}, {event.get('model')}"
        elif kind == "model":
            yield f"model: {event.get('model')}"
        elif kind == "message" and isinstance(message, dict) and message.get("content"):
            yield f"\n{'> ' if message.get('role') == 'user' else ''}{message['content']}"
        elif kind == "call":
            yield f"  {call_line(event['call'])}"
        elif kind == "result":
            yield f"  {_result(event)}"
        elif kind == "notice":
            yield str(event.get("text"))
        elif kind == "compaction":
            yield "(the turns before were summarised for the model)"
        elif kind == "partial":
            yield f"\n{event.get('text')} …"
        elif kind == "end" and (ending := ending_of(event.get("stop"), event.get("error"))):
            yield f"({ending})"


def as_row(path: Path) -> dict[str, Any]:
    """The whole conversation in OpenAI's form, with every call answered; summaries are left out."""
    history = _whole(path)
    messages = [system(history.system), *history.messages()] if history.system else history.messages()
    shown = [{k: v for k, v in message.items() if k != "provider_state"} for message in messages]
    return {"session": path.stem, "model": history.model, "messages": shown}


def as_markdown(path: Path) -> str:
    """The same to read, without the system prompt."""
    history, asides = History(), defaultdict[int, list[str]](list)
    for event in read_events(path):
        if event.get("kind") != "compaction":
            history.apply(event)
            asides[history.length] += _aside(event)
    parts = [f"# Session {path.stem}\n\nAnswered by {history.model}.", *asides[0]]
    number = 0
    for message in history.messages():
        if message["role"] != "tool":
            parts += asides[number] if number else []
            number += 1
        parts += _markdown(message)
    parts += asides[number] if number else []
    return "\n\n".join(parts) + "\n"


def ending_of(stop: object, why: object) -> str:
    """How a turn ended, for a person; "" where it simply finished."""
    if stop in ("finished", "declined", None):
        return ""
    if why == "cancelled":
        return "cut off: the conversation was ended meanwhile"
    said = str(stop).replace("_", " ")
    return f"{said}: {why}" if why and why != stop else said


def _aside(event: dict[str, Any]) -> Iterator[str]:
    """What belongs to the conversation and is no message of it."""
    if event.get("kind") == "partial":
        yield f"## Assistant\n\n{event.get('text')} …"
    elif event.get("kind") == "end" and (ending := ending_of(event.get("stop"), event.get("error"))):
        yield f"*({ending})*"


def _markdown(message: Message) -> Iterator[str]:
    content = message.get("content") or ""
    if message["role"] == "tool":
        yield f"Result of `{message.get('name')}`:\n\n{_fenced(_indented(content))}"
        return
    if message["role"] == "user" or content or not message.get("tool_calls"):
        yield f"## {'Request' if message['role'] == 'user' else 'Assistant'}"
        yield content
    for call in message.get("tool_calls", []):
        yield f"Call of `{call['function']['name']}`:\n\n{_fenced(_indented(call['function']['arguments']))}"


def _whole(path: Path) -> History:
    """All that was said: what a summary stood for is still in the file before it."""
    history = History()
    for event in read_events(path):
        if event.get("kind") != "compaction":
            history.apply(event)
    return history


def _result(event: dict[str, Any]) -> str:
    name, content = event["name"], event["content"]
    try:
        return result_line(name, bool(event.get("ok")), content, event["seconds"])
    except (ValueError, AttributeError, TypeError, RecursionError):  # a file that somebody has edited
        return f"{name}: {content}"


def _indented(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):  # as the model wrote it
        return text


def _fenced(text: str) -> str:
    """In a fence that is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}json\n{text}\n{fence}"
