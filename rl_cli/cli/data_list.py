"""`rl-cli data list`: the batches of this home, the one that was worked on last before the others."""

from __future__ import annotations

import sys
from typing import Any

from rl_cli.cli.app import JsonOption
from rl_cli.cli.output import cell, print_json_lines, print_table
from rl_cli.runs.times import local_text, local_zone, seconds_of

MADE_BY = "no batches yet; rl-cli data generate --input FILE --name NAME makes one"
COLUMNS = ("batch", "state", "done", "failed", "cost")


def list_command(json_: JsonOption = False) -> None:
    """List batches, newest first: how each is, what it holds, what it has cost."""
    from rl_cli.data.jobs.status import listed

    rows = listed()
    if not rows:
        print(MADE_BY, file=sys.stderr)
    elif json_:
        print_json_lines(rows)
    else:
        print_table([*COLUMNS, f"started ({local_zone()})", "reason"], map(_columns, rows))


def _columns(row: dict[str, Any]) -> list[Any]:
    done = row["done"] if row["expected"] is None else f"{cell(row['done'])}/{row['expected']}"
    started, cost = local_text(seconds_of(row["started"])), f"${row['cost_usd']:.4f}"
    return [row["name"], row["state"], done, row["failed"], cost, started, row["reason"]]
