"""A report as Markdown; what comes from a run is escaped or stands in a fence."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from rl_cli.core.printable import printable
from rl_cli.runs.curves import Curve
from rl_cli.runs.reports.page import Block, Cell, Chart, Charts, Code, Columns, Page, Sample, Table, Text
from rl_cli.runs.reports.sparkline import sparkline

SPARKS = 24


def as_markdown(page: Page) -> str:
    """The page as text in GitHub's Markdown."""
    state = f": {page.state}" if page.state else ""
    lines = [
        f"# {_inline(page.title + state)}",
        "",
        _text(page.about),
        "",
        f"**{_inline(page.outcome)}**",
        "",
    ]
    for note in page.notes:
        lines += [f"> {_text(note)}", ""]
    for section in page.sections:
        if section.blocks:
            lines += [f"## {_inline(section.title)}", ""]
            for block in section.blocks:
                lines += [*_block(block), ""]
    return "\n".join([*lines, _text(page.footer)]) + "\n"


_MEANT = re.compile(
    r"""[`\[\]]                    # code, links
    | \\(?=[!-/:-@\[-`{-~]|$)    # a backslash that would escape
    | \*(?=\S) | (?<=\S)\*       # emphasis
    | (?<![^\W_])_ | _(?![^\W_]) # the same; not inside a word
    | <(?=[A-Za-z/!?])           # tags
    | &(?=\#?\w+;)               # entities
    | (?<=\S)~ | ~(?=~)          # strikethrough
    """,
    re.VERBOSE,
)
"""What Markdown would not take for itself, wherever it stands in a line."""


def _text(text: str) -> str:
    """A paragraph on one line that means nothing but itself."""
    told = re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", _inline(text))  # a list
    return re.sub(r"^(>|[*#+=-](?=[#+=-]*(?:\s|$)))", r"\\\1", told)


def _inline(text: str) -> str:
    """The same inside a line."""
    return _MEANT.sub(lambda found: "\\" + found[0], " ".join(printable(text).split()))


def _in_cell(text: str) -> str:
    """The same in a table."""
    return _inline(text).replace("|", "\\|")


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Text):
        yield ("> " if block.kind == "note" else "") + _text(block.text)
    elif isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Columns):
        for table in block.tables:
            yield from [*_table(table), ""]
    elif isinstance(block, Code):
        yield from _fenced(block.text)
    elif isinstance(block, Charts):
        yield from _charts(block.charts)
    else:
        yield from _sample(block)


def _table(table: Table) -> Iterator[str]:
    if not table.rows:
        return
    width = len(table.rows[0])
    yield _row(table.heads or [""] * width)
    yield "|" + "".join("---:|" if 1 <= i <= table.numbers else "---|" for i in range(width))
    for i, row in enumerate(table.rows):
        cells = [_cell(cell) for cell in row]
        yield "| " + " | ".join([f"**{cells[0]}**" if i in table.marked else cells[0], *cells[1:]]) + " |"


def _row(texts: Sequence[str]) -> str:
    return "| " + " | ".join(map(_in_cell, texts)) + " |"


def _cell(cell: Cell | str) -> str:
    return _in_cell(cell if isinstance(cell, str) else f"{cell.text} {cell.aside}")


def _fenced(text: str) -> list[str]:
    text = printable(text)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return [fence, text, fence]


def _charts(charts: Sequence[Chart]) -> Iterator[str]:
    """A table with a small picture of each curve: Markdown has no other."""
    several = any(len(chart.curves) > 1 for chart in charts)
    yield _row(["figure", *(["run"] if several else []), "curve", "first", "newest", "lowest", "highest"])
    yield "|---|" + ("---|" if several else "") + "---|---:|---:|---:|---:|"
    for chart in charts:
        for name, curve in chart.curves:
            if len(curve):
                names = [chart.title, *([name] if several else [])]
                yield _row([*names, sparkline(curve, SPARKS), *_ends(curve)])


def _ends(curve: Curve) -> list[str]:
    finite = [value for value in curve.values if math.isfinite(value)]
    extremes = [min(finite), max(finite)] if finite else [math.nan, math.nan]
    return [f"{value:.4g}" for value in (curve.values[0], curve.values[-1], *extremes)]


def _sample(sample: Sample) -> Iterator[str]:
    yield f"**{_inline(sample.title)}**"
    yield ""
    if sample.prompt:
        yield from [*_fenced(sample.prompt), ""]
    for answer in sample.answers:
        yield from [_text(answer.label + answer.reward), "", *_fenced(answer.text), ""]
