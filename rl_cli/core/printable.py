"""Text from anywhere, made safe to print: a terminal obeys escape sequences, a person should not have to."""

from __future__ import annotations

from rl_cli.core.redaction import redact_text


def printable(text: str) -> str:
    """`text` without secrets, with U+FFFD for control characters (not tab, newline) and lone surrogates."""
    text = redact_text(text)
    if text.isascii() and text.isprintable():
        return text
    clean = "".join(c if c in "\n\t\u3000" or c.isprintable() else "\ufffd" for c in text)
    return clean.encode("utf-8", "replace").decode("utf-8")
