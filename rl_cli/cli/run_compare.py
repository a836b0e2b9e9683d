"""`rl-cli runs compare`: runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rl_cli.cli.output import cell, print_json, print_table, say
from rl_cli.cli.run_plots import MOST_RUNS, plots_wanted, print_plots
from rl_cli.core.errors import BadUsage
from rl_cli.core.files import explain_os_error
from rl_cli.runs.reports.compare import compare, paired_sentences

WIDEST = 48
"""Characters of a setting."""


def compare_runs(
    runs: Sequence[Any], as_json: bool, plot: bool | None = None, html: Path | None = None
) -> None:
    """Prints where the configs of runs differ and what came of them.

    Args:
        runs: Two RunDirs or more.
        as_json: One JSON object.
        plot: Whether to draw the curves over each other; default: on a terminal.
        html: Also write a page, with the curves over each other.

    Raises:
        BadUsage: One is named twice, they are too many to draw, or the page's folder does not exist.
        RlCliError: The page cannot be written.
    """
    twice = [run.id for i, run in enumerate(runs) if run.id in {one.id for one in runs[:i]}]
    if twice:
        raise BadUsage(f"{twice[0]} is named twice", "name another run; rl-cli runs list shows them")
    if len(runs) > MOST_RUNS and (html or plot):
        raise BadUsage(f"at most {MOST_RUNS} runs can be told apart in one drawing", "compare fewer of them")
    if html and not html.absolute().parent.is_dir():
        raise BadUsage(f"there is no folder {html.absolute().parent}", "make it, or name another file")
    if html:  # first: a pipe may close below
        _write(runs, html)
    compared = compare(runs)
    if as_json:
        print_json(compared)
    else:
        _print(compared)
        if plots_wanted(plot) and len(runs) <= MOST_RUNS:
            print_plots(runs)
    if html:
        say(f"page: {html.absolute()}", error=as_json)


def _print(compared: dict[str, Any]) -> None:
    rows: list[list[Any]] = [[name, *(s[name] for s in compared["runs"])] for name in ("backend", "state")]
    config = compared["config"] if "seed" in compared["config"] else {"seed": compared["seeds"]}
    rows += [[name, *map(_shown, values)] for name, values in {**config, **compared["config"]}.items()]
    for name, values in compared["eval"].items():
        errors = compared["standard_errors"].get(name, [None] * len(values))
        rows.append([name, *map(_with_error, values, errors)])
    rows.append(["test problems", *compared["n"]])
    rows += [[name, *values] for name, values in compared["last"].items()]
    ids = [s["id"] for s in compared["runs"]]
    print_table(["", *ids], rows)
    for note in [*paired_sentences(compared), *compared["notes"]]:
        say(note)


def _shown(value: Any) -> Any:
    """A setting; of a long one the end, where paths differ."""
    text = cell(value)
    return value if len(text) <= WIDEST else f"…{text[1 - WIDEST :]}"


def _with_error(value: float | None, error: float | None) -> Any:
    return value if value is None or error is None else f"{value:.4f} ± {error:.4f}"


def _write(runs: Sequence[Any], path: Path) -> None:
    from rl_cli.runs.reports.compare_page import write_comparison

    try:
        write_comparison(runs, path)
    except OSError as error:
        raise explain_os_error(error, path) from error
