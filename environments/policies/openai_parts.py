"""Values in the chunks of a chat completion -> text, reasoning, counts of tokens."""

from __future__ import annotations

from typing import Any

from environments.policies.base import Usage


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


def detail_text(detail: Any) -> str:
    """The readable text of an element of `reasoning_details`; empty where it is encrypted."""
    texts = [detail.get(k) for k in ("text", "summary")] if isinstance(detail, dict) else []
    return next((text for text in texts if isinstance(text, str)), "")


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
