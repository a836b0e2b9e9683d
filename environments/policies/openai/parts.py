"""Values in the chunks of a chat completion -> text, reasoning, counts of tokens."""

from __future__ import annotations

from typing import Any

from environments.policies.base import Usage
from rl_cli.core.json_text import repair_surrogates


def texts_of(content: Any) -> tuple[str, str]:
    """Text and reasoning of a content: text, or a list of parts."""
    if isinstance(content, str):
        return content, ""
    text, thought = "", ""
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            text += part
        elif isinstance(part, dict):
            inner = next((part[k] for k in ("text", "refusal", "thinking", "reasoning") if part.get(k)), "")
            words = inner if isinstance(inner, str) else texts_of(inner)[0]
            if part.get("type") in ("thinking", "reasoning"):
                thought += words
            else:
                text += words
    return text, thought


class PairedText:
    """Joins surrogate pairs that were split over two pieces, and replaces halves that stay alone."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, piece: str) -> str:
        piece = self._half + piece
        self._half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""
        return repair_surrogates(piece[:-1] if self._half else piece)

    def rest(self) -> str:
        half, self._half = self._half, ""
        return repair_surrogates(half)


def detail_text(detail: Any) -> str:
    """The readable text of an element of `reasoning_details`; empty where it is encrypted."""
    texts = [detail.get(k) for k in ("text", "summary")] if isinstance(detail, dict) else []
    return next((text for text in texts if isinstance(text, str)), "")


def merged_details(details: list[Any]) -> list[Any]:
    """`reasoning_details` with the pieces of one element joined."""
    groups: list[list[Any]] = []
    for detail in details:
        if groups and _same_element(groups[-1][-1], detail):
            groups[-1].append(detail)
        else:
            groups.append([detail])
    return [_joined(group) if len(group) > 1 else group[0] for group in groups]


def _joined(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    whole = dict(pieces[0])
    for piece in pieces[1:]:
        whole |= {key: value for key, value in piece.items() if value is not None}
    for key in ("text", "summary"):
        if texts := [piece[key] for piece in pieces if isinstance(piece.get(key), str)]:
            whole[key] = "".join(texts)
    return whole


def _same_element(a: Any, b: Any) -> bool:
    both = isinstance(a, dict) and isinstance(b, dict) and b.get("index") is not None
    return both and all(a.get(key) == b.get(key) for key in ("index", "type"))


def usage_of(usage: dict[str, Any]) -> Usage | None:
    """None where nothing was counted."""
    given, sampled = count_of(usage.get("prompt_tokens")), count_of(usage.get("completion_tokens"))
    if not given and not sampled:
        return None
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    cached = count_of(details.get("cached_tokens")) or count_of(usage.get("prompt_cache_hit_tokens"))
    return Usage(
        input_tokens=given,
        output_tokens=sampled,
        cached_tokens=min(cached, given),
        cache_write_tokens=min(count_of(details.get("cache_write_tokens")), given),
        requests=1,
    )


def count_of(value: Any) -> int:
    """A count, 0 where it is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return int(min(max(0, value), 10**12)) if is_number else 0
