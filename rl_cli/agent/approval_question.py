"""The question before a call: what it may do, its arguments, where, how long, at what cost.

A model writes the arguments and some of the facts, so nothing in them may look like a part of the question:
every line but the first of one stands behind a mark of its own, what would move the cursor or show nothing is
written as an escape, and what is too long to read is cut with its true length. Secrets are masked before
anything is wrapped or cut: nobody would recognise the parts of one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from rl_cli.core.json_text import to_json
from rl_cli.core.redaction import redact, redact_text
from rl_cli.runs.times import duration
from rl_cli.spending.units import money
from tools.spec import Estimate, ToolSpec

WILL = {
    "read": "look something up",
    "write": "change files",
    "execute": "run code on this computer",
    "spend": "take this computer for a while, or cost money",
    "leave": "run code on this computer outside of the sandbox, with all your files and the network",
}
HEAD, TAIL = 600, 300
"""Characters of an argument that are shown where it is longer than both."""
LONGEST_FACT = 300
GUTTER = "  | "
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Count as printable, and show nothing."""


def describe_call(
    spec: ToolSpec, arguments: Mapping[str, Any], estimate: Estimate | None, width: int, whole: bool = False
) -> tuple[str, bool]:
    """A call as a person should see it before it runs.

    Args:
        width: Columns of the terminal.
        whole: Cut nothing.

    Returns:
        Lines of at most `width` columns (40 at least), and whether something was cut.
    """
    width = max(40, width)
    lines = _wrapped(f"{spec.name} may {WILL[spec.risk]}:", "", "  ", width)
    cut = False
    for name, value in redact(dict(arguments)).items():
        text = redact_text(to_json(value))
        if whole or len(text) <= HEAD + TAIL:
            lines += _wrapped(f"{name} = {visible(text)}", "  ", GUTTER, width)
            continue
        cut = True
        lines += _wrapped(f"{name} = {visible(text[:HEAD])}", "  ", GUTTER, width)
        left_out = len(text) - HEAD - TAIL
        lines += [f"  ... {left_out:,} of its {len(text):,} characters are left out here ..."]
        lines += _wrapped(visible(text[-TAIL:]), GUTTER, GUTTER, width)
    for name, fact in facts(spec, estimate).items():
        text, left_out = redact_text(fact), 0
        if not whole and len(text) > LONGEST_FACT:
            text, left_out, cut = text[:LONGEST_FACT], len(text) - LONGEST_FACT, True
        lines += _wrapped(f"{name}: {visible(text)}", "  ", GUTTER, width)
        if left_out:
            lines += [f"  ... the last {left_out:,} characters of that are left out here ..."]
    return "\n".join(lines), cut


def facts(spec: ToolSpec, estimate: Estimate | None) -> dict[str, str]:
    """Where a call runs and what it takes, as far as is known; nothing for what only looks or writes."""
    if estimate is None:
        return {"time": "not known", "cost": "unknown"} if spec.risk == "spend" else {}
    gpu = f"{estimate.gpu_hours:.2g} GPU hours" if estimate.gpu_hours else ""
    if estimate.dollars is None:
        cost = "unknown"
    elif estimate.dollars == 0:
        cost = "0"
    else:
        cost = f"about {money(estimate.dollars)}"
    counted = {name: f"{value:,}" for name, value in estimate.scope.items() if not isinstance(value, str)}
    named = {name: to_json(value) for name, value in estimate.scope.items() if isinstance(value, str)}
    time, basis = "not known", estimate.basis
    if estimate.seconds is not None:
        time = f"about {duration(estimate.seconds)}"
    if estimate.seconds is None and estimate.dollars == 0:
        time, basis = f"not known: {basis}" if basis else "not known", ""
    known = {
        "what": estimate.what,
        **counted,
        "where": estimate.where,
        "time": time,
        "cost": f"{cost} ({gpu})" if gpu else cost,
        "estimated from": basis,
        **named,
    }
    if estimate.seconds is None and not estimate.basis and spec.risk != "spend":
        del known["time"], known["cost"]  # it is a command or a file
    return {name: text for name, text in known.items() if text}


def visible(text: str) -> str:
    """Characters that would move the cursor, turn the text round, pile up or show nothing, as escapes."""
    shown: list[str] = []
    marks = 0
    for c in text:
        marks = marks + 1 if unicodedata.combining(c) else 0
        hidden = not c.isprintable() or c in _BLANK or "\ufe00" <= c <= "\ufe0f" or marks > 2
        hidden = hidden or "\u180b" <= c <= "\u180f" or "\U000e0100" <= c <= "\U000e01ef"
        shown.append(c if not hidden else f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}")
    return "".join(shown)


def _wrapped(text: str, first: str, then: str, width: int) -> list[str]:
    """`text` in lines of at most `width` columns; the first begins with `first`, the others with `then`.

    No character is left out; a line ends behind a blank where the word that crosses its edge is short.
    """
    lines, start, line, used = [], len(first), first, len(first)
    for c in text:
        columns = _columns(c)
        if used + columns > width:
            blank = line.rfind(" ", start) + 1
            kept = blank if c != " " and blank > start and len(line) - blank < width // 3 else len(line)
            lines.append(line[:kept])
            line, start = then + line[kept:], len(then)
            used = sum(map(_columns, line))
        line, used = line + c, used + columns
    return [*lines, line]


def _columns(c: str) -> int:
    return 0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
