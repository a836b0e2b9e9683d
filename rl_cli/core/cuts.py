"""Text cut to a length, its secrets masked before: a part of one would not be recognised."""

from __future__ import annotations

from rl_cli.core.redaction import redact_text


def one_line(text: str, limit: int, mark: str = "…") -> str:
    """`text` on one line of at most `limit` characters; `mark` stands where more would follow."""
    return _head(" ".join(redact_text(text).split()), limit, mark)


def head(text: str, limit: int, mark: str = "…") -> str:
    """The beginning of `text`, its lines kept: at most `limit` characters; `mark` where more would follow."""
    return _head(redact_text(text), limit, mark)


def ends(text: str, keep: int) -> str:
    """Head and tail of a text, `keep` characters in all, and between them how much was left out."""
    if len(text) <= keep:
        return text
    text = redact_text(text)
    if len(text) <= keep:
        return text
    first = keep * 2 // 3
    last = text[len(text) - (keep - first) :]
    return f"{text[:first]}\n[... {len(text) - keep} characters left out ...]\n{last}"


def _head(text: str, limit: int, mark: str) -> str:
    return text if len(text) <= limit else text[: max(0, limit - len(mark))].rstrip() + mark
