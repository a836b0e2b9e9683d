"""`rl-cli runs compare`: runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rl_cli.cli.output import print_json, print_table, say
from rl_cli.runs.compare import compare


def compare_runs(runs: Sequence[Any], as_json: bool) -> None:
    """Prints where the configs of runs differ and what came of them.

    Args:
        runs: Two RunDirs or more.
        as_json: One JSON object.
    """
    compared = compare(runs)
    if as_json:
        print_json(compared)
        return
    rows: list[list[Any]] = [[name, *(s[name] for s in compared["runs"])] for name in ("backend", "state")]
    config = compared["config"] if "seed" in compared["config"] else {"seed": compared["seeds"]}
    rows += [[name, *values] for name, values in {**config, **compared["config"]}.items()]
    for name, values in compared["eval"].items():
        errors = compared["standard_errors"].get(name, [None] * len(values))
        rows.append([name, *map(_with_error, values, errors)])
    rows.append(["test problems", *compared["n"]])
    rows += [[name, *values] for name, values in compared["last"].items()]
    print_table(["", *(s["id"] for s in compared["runs"])], rows)
    for note in compared["notes"]:
        say(note)


def _with_error(value: float | None, error: float | None) -> Any:
    return value if value is None or error is None else f"{value:.4f} ± {error:.4f}"
