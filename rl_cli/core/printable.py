"""Text from anywhere, made safe to print: a terminal obeys escape sequences, a person should not have to."""

from __future__ import annotations

import json

from rl_cli.core.redaction import redact_text


def printable(text: str) -> str:
    """`text` without secrets, with U+FFFD for control characters (not tab, newline) and lone surrogates."""
    text = redact_text(text)
    if text.isascii() and text.isprintable():
        return text
    clean = "".join(c if c in "\n\t\u3000" or c.isprintable() else "\ufffd" for c in text)
    return clean.encode("utf-8", "replace").decode("utf-8")


def printable_json(text: str) -> str:
    """JSON that says the same, with escapes for what a terminal would obey: direction, old control codes."""
    if text.isascii():  # json escapes those below a space itself
        return text.replace("\x7f", "\\u007f")
    return "".join(c if c in "\n\t" or c.isprintable() else json.dumps(c)[1:-1] for c in text)
