"""Trajectories as one HTML page that needs nothing else, with search and filters.

Rows are data in the page and become text there, never markup. Its policy lets no script run but its own, and
nothing be loaded.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from rl_cli.core.json_text import repair_surrogates, to_json
from rl_cli.core.redaction import redact
from rl_cli.data.show.entries import entries, facts, marks_of

HERE = Path(__file__).parent
ROWS = "<!-- rows -->"


def as_page(rows: Iterable[tuple[int, dict[str, Any]]], title: str) -> Iterator[str]:
    """The page, in pieces.

    Args:
        rows: (number in the file, canonical row).
        title: What it shows.
    """
    style, script = ((HERE / name).read_text("utf-8") for name in ("page.css", "page.js"))
    template = Template((HERE / "page.html").read_text("utf-8"))
    page = template.substitute(
        title=escape(repair_surrogates(title)),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )
    before, _, after = page.partition(ROWS)
    yield before
    for number, row in rows:
        yield f'<script type="application/json" class="row">{_data(number, row)}</script>\n'
    yield after


def _data(number: int, row: dict[str, Any]) -> str:
    """JSON in which nothing ends the element that it stands in."""
    shown = {
        "number": number,
        "facts": list(facts(row)),
        "completed": row.get("completed"),
        "score": row.get("score"),
        "marks": marks_of(row),
        "entries": [vars(entry) for entry in entries(row["messages"])],
    }
    return to_json(redact(shown)).replace("<", "\\u003c")


def _hash(text: str) -> str:
    """For a Content-Security-Policy (https://www.w3.org/TR/CSP3/#grammardef-hash-source)."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
