"""A report as one HTML page that needs nothing else, no script, no font, no link.

Everything that comes from a run is text here, never markup: samples and logs may hold anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from rl_cli.core.json_text import repair_surrogates
from rl_cli.core.redaction import redact_text
from rl_cli.runs.reports.charts import COLOURS, MOST_POINTS, Series, overlaid
from rl_cli.runs.reports.page import (
    Block,
    Cell,
    Chart,
    Charts,
    Code,
    Columns,
    Page,
    Sample,
    Section,
    Table,
    Text,
)
from rl_cli.runs.reports.thinning import thinned

TONES = ("good", "warn", "bad")


def as_html(page: Page) -> str:
    """The page as text."""
    style = Path(__file__).with_name("report.css").read_text("utf-8")
    state = f"<span class='state {_word(page.state)}'>{_text(page.state)}</span>" if page.state else ""
    body = [
        f"<header><h1>{_text(page.title)}{state}</h1>",
        f"<p class='about'>{_text(page.about)}</p>",
        f"<p class='outcome'>{_text(page.outcome)}</p>",
        *(f"<p class='note'>{_text(note)}</p>" for note in page.notes),
        "</header>",
        *(_section(section) for section in page.sections if section.blocks),
        f"<footer>{_text(page.footer)}</footer>",
    ]
    head = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta name='color-scheme' content='light dark'>"
        f"<title>{_text(f'{page.title}: {page.state}'.rstrip(': '))}</title><style>{style}</style></head>"
    )
    return repair_surrogates(f"{head}<body>{''.join(body)}</body></html>\n")


def _text(text: str) -> str:
    return escape(redact_text(text))


def _word(text: str) -> str:
    return text if text.isalpha() else ""


def _section(section: Section) -> str:
    blocks = "".join(_block(block) for block in section.blocks)
    return f"<section><h2>{_text(section.title)}</h2>{blocks}</section>"


def _block(block: Block) -> str:
    if isinstance(block, Text):
        kind = f" class='{block.kind} break'" if block.kind else ""
        return f"<p{kind}>{_text(block.text)}</p>"
    if isinstance(block, Table):
        return f"<div class='wide'>{_table(block)}</div>"
    if isinstance(block, Columns):
        return f"<div class='config'>{''.join(_table(table) for table in block.tables)}</div>"
    if isinstance(block, Code):
        return f"<div class='log'>{_text(block.text)}</div>"
    if isinstance(block, Charts):
        return _charts(block.charts)
    return _sample(block)


def _table(table: Table) -> str:
    head = f"<thead>{_row('th', table.heads, table)}</thead>" if table.heads else ""
    rows = (_row("td", row, table, i in table.marked) for i, row in enumerate(table.rows))
    return f"<table class='{table.kind}'>{head}<tbody>{''.join(rows)}</tbody></table>"


def _row(tag: str, row: Sequence[Cell | str], table: Table, marked: bool = False) -> str:
    stacked = table.kind == "stacked" and tag == "td"
    cells = []
    for i, cell in enumerate(row):
        kind = " class='number'" if 1 <= i <= table.numbers else ""
        head = f" data-head='{_text(table.heads[i])}'" if stacked else ""
        cells.append(f"<{tag}{kind}{head}>{_cell(cell)}</{tag}>")
    return f"<tr{' class=' + repr('changed') if marked else ''}>{''.join(cells)}</tr>"


def _cell(cell: Cell | str) -> str:
    if isinstance(cell, str):
        return _text(cell)
    text = _text(cell.text)
    if cell.hover or cell.tone in TONES:
        kind = f" class='{cell.tone}'" if cell.tone in TONES else ""
        hover = f" title='{_text(cell.hover)}'" if cell.hover else ""
        text = f"<span{kind}{hover}>{text}</span>"
    return text + (f" <span class='none'>{_text(cell.aside)}</span>" if cell.aside else "")


def _charts(charts: Sequence[Chart]) -> str:
    names = [name for name, _ in charts[0].curves] if charts else []
    legend = ""
    if len(names) > 1:
        marks = (f"<li><span class='line c{i % COLOURS}'></span>{_text(n)}</li>" for i, n in enumerate(names))
        legend = f"<ul class='names'>{''.join(marks)}</ul>"
    figures = [
        overlaid(
            chart.title,
            [Series(thinned(curve, MOST_POINTS), name) for name, curve in chart.curves],
            dots=chart.dots,
            levels=chart.levels,
            start=chart.start,
            bounds=chart.bounds,
        )
        for chart in charts
    ]
    return f"{legend}<div class='charts'>{''.join(figures)}</div>"


def _sample(sample: Sample) -> str:
    parts = [f"<div class='sample'><p>{_text(sample.title)}</p>"]
    if sample.prompt:
        parts.append(f"<pre>{_text(sample.prompt)}</pre>")
    for answer in sample.answers:
        tone = answer.tone if answer.tone in TONES else "none"
        parts.append(f"<p><span class='{tone}'>{_text(answer.label)}</span>{_text(answer.reward)}</p>")
        parts.append(f"<pre>{_text(answer.text)}</pre>")
    return "".join([*parts, "</div>"])
