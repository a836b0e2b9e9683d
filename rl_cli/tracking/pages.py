"""Histories page by page, through the wandb SDK's connection. Runs in the child only (see `answers`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rl_cli.core.json_text import parse_json

Row = dict[str, Any]

EXPORTED = """
query RunParquetHistory($entity: String!, $project: String!, $runName: String!, $liveKeys: [String!]!) {
    project(name: $project, entityName: $entity) {
        run(name: $runName) { parquetHistory(liveKeys: $liveKeys) { parquetUrls } }
    }
}"""
PAGE = """
query HistoryPage(
    $entity: String!, $project: String!, $run: String!, $minStep: Int64!, $maxStep: Int64!, $pageSize: Int!
) {
    project(name: $project, entityName: $entity) {
        run(name: $run) { history(minStep: $minStep, maxStep: $maxStep, samples: $pageSize) }
    }
}"""
PAGE_ROWS = 500
"""Rows that are read at a time: more cost memory in wandb-core."""
FIRST_ROWS = 100
"""Of a run whose rows may be of any length."""
PAGE_BYTES = 400_000
"""Of a page of live rows, about: up to twice as many rows if they are short, fewer if they are long."""
MOST_PAGE_ROWS = 8 * PAGE_ROWS


def is_all_live(run: Any) -> bool:
    """Whether W&B has exported nothing of the history: it then comes page by page, as in one scan of the SDK.

    (That scan begins with the numbers of all steps, which takes wandb-core 40 MB for 100,000 of them.)
    """
    try:
        text: str = run._service_api.execute_graphql(
            EXPORTED, _named(run, runName=run.id, liveKeys=[]), parse=str
        )
    except Exception:  # a server that does not know it: the SDK's scan decides
        return False
    return re.search(r'"parquetUrls"\s*:\s*\[\s*\]', text) is not None


def live_rows(run: Any, start: int, stop: int) -> Iterator[str]:
    """JSON texts of the rows from step `start` up to but not with `stop`, as W&B has them.

    Steps that nobody logged go by fast.
    """
    size = FIRST_ROWS
    while start < stop:
        page = {"minStep": start, "maxStep": min(start + size, stop), "pageSize": 2 * size}
        answer = run._service_api.execute_graphql(PAGE, _named(run, run=run.id, **page), parse=parse_json)
        rows = answer["project"]["run"]["history"]
        yield from rows
        start += size
        if rows:
            fit = PAGE_BYTES * size // sum(map(len, rows))
            size = max(1, min(fit, 2 * PAGE_ROWS))
        else:
            size = min(2 * size, MOST_PAGE_ROWS)


def _named(of: Any, **more: Any) -> Row:
    return {"entity": of.entity, "project": of.project, **more}


def scan_rows(scan: Any, start: int, stop: int) -> Iterator[Row]:
    """Rows of an open scan, page by page; a page is so many steps, and steps that nobody logged go by fast.

    (The scan's own iteration takes pages of one size, and cannot go on where new steps have come.)
    """
    scan._stop_step, scan.page_offset, scan.page_size = stop, start, PAGE_ROWS
    while scan.page_offset < stop:
        scan._load_next()
        yield from scan.rows
        scan.page_size = PAGE_ROWS if scan.rows else min(2 * scan.page_size, MOST_PAGE_ROWS)
