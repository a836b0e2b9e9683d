"""The content of a message, whatever its form, as text."""

from __future__ import annotations

import json
from typing import Any

from rl_cli.core.json_text import repair_surrogates
from rl_cli.data.errors import Unconvertible

TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
MEDIA = ("image", "image_url", "audio", "input_audio", "video", "video_url", "file", "document")
"""Parts of these types hold one of these keys, or a `source`, `url` or `data`."""
SUMMARIES = ("text_summary", "summary", "alt", "title", "transcript")
THINKING_PARTS = ("thinking", "reasoning")
ANTHROPIC_PARTS = ("tool_use", "tool_result", "redacted_thinking", *THINKING_PARTS)


def text_of(content: Any) -> str:
    """A content as text: parts one per line, media as their summary, what is unknown as JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return repair_surrogates(content)
    if isinstance(content, dict) and isinstance(content.get("text_summary"), str):
        return repair_surrogates(content["text_summary"])
    parts = content if isinstance(content, list) else [content]
    if not _are_parts(parts):
        return json_of(content)
    return "\n".join(filter(None, map(_part_text, parts)))


def _are_parts(values: list[Any]) -> bool:
    """Rather than a tool's result that is a list: texts alone, or objects with a part among them."""
    objects = [value for value in values if isinstance(value, dict)]
    texts = sum(isinstance(value, str) for value in values)
    known = any(map(_is_part, objects)) if objects else bool(texts)
    return known and len(objects) + texts == len(values)


def _is_part(part: dict[str, Any]) -> bool:
    return part.get("type") in (*TEXT_PARTS, *ANTHROPIC_PARTS) or _is_media(part)


def _is_media(part: dict[str, Any]) -> bool:
    """Rather than a tool's result that happens to have a `type`."""
    holds = any(key in part for key in (*MEDIA, "source", "url", "data"))
    return part.get("type") in (*MEDIA, "input_image", "input_file") and (holds or len(part) == 1)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return repair_surrogates(part)
    kind = part.get("type")
    if kind in TEXT_PARTS:
        return text_of(part.get("refusal" if kind == "refusal" else "text"))
    if _is_media(part):
        name = str(kind).removeprefix("input_").removesuffix("_url")
        summary = next((part[key] for key in SUMMARIES if part.get(key)), None)
        return f"[{name}: {repair_surrogates(summary)}]" if isinstance(summary, str) else f"[{name}]"
    return "" if kind in ANTHROPIC_PARTS else json_of(part)


def spoken(content: Any) -> str:
    """The text of what is no result, where an empty list says nothing."""
    return "" if content == [] else text_of(content)


def parts_of(content: Any, *kinds: str) -> list[dict[str, Any]]:
    """The parts of these types."""
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") in kinds]


def json_of(value: Any) -> str:
    """JSON text that changes no value; with NaN it is none, and is kept as text."""
    try:
        return repair_surrogates(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        raise Unconvertible("lists or objects nested too deeply") from None
