"""Text from anywhere, made safe to print: a terminal obeys escape sequences, a person should not have to."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` with U+FFFD for control characters (other than tab and newline) and for lone surrogates."""
    if text.isascii() and text.isprintable():
        return text
    clean = "".join(c if c in "\n\t\u3000" or c.isprintable() else "\ufffd" for c in text)
    return clean.encode("utf-8", "replace").decode("utf-8")
