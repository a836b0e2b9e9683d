"""What `rl-cli runs show` and `runs report` say of one run."""

from __future__ import annotations

from typing import Any

from rl_cli.cli.output import cell, print_fields, print_json, say
from rl_cli.core.cuts import one_line
from rl_cli.runs.alert_words import at_step


def show_run(run: Any, as_json: bool, plot: bool | None = None) -> None:
    """Prints state, progress, accuracy, what it took, alerts, curves.

    Args:
        run: A RunDir.
        as_json: One JSON object, the same as `runs list` prints; costs are in `rl-cli costs --run`.
        plot: Whether to draw curves; default: on a terminal.
    """
    from rl_cli.cli.run_plots import plots_wanted, print_plots
    from rl_cli.runs.outcome import attempts_in_words, seconds_taken
    from rl_cli.runs.state_file import attempt_seconds
    from rl_cli.runs.tracking_file import in_words as tracking_in_words
    from rl_cli.runs.tracking_file import read_tracking, tracking_notes
    from rl_cli.spending.gate import spent_on
    from rl_cli.spending.units import in_words

    summary = run.summary()
    if as_json:
        print_json(summary)
        return
    state = run.state()
    spent = spent_on(run.home, run.id, state.get("spending"), attempt_seconds(state) or 0.0)
    alerts, figures = summary.pop("alerts"), summary.pop("last_metrics")
    evaluation = summary.pop("eval")
    summary["test problems"] = evaluation.pop("n")
    measured = {f"accuracy, {name}": value for name, value in evaluation.items() if value is not None}
    units = {"gpu_hours": "GPU time", "dollars": "cost", "tokens": "tokens of endpoints"}
    took = {name: in_words(unit, spent.of(unit)) for unit, name in units.items() if spent.of(unit)}
    took |= {"time": in_words("hours", seconds / 3600)} if (seconds := seconds_taken(state)) else {}
    tracking = read_tracking(run)
    tracked = {"W&B": tracking_in_words(tracking, why=False)} if tracking else {}
    silent = {"silent": quiet} if (quiet := _quiet(run, summary)) else {}
    resumed = {"attempts": told} if (told := attempts_in_words(run, state)) else {}
    print_fields({**_named(summary), **silent, **resumed, **measured, **took, **tracked})
    notes = tracking_notes(run)
    for note in notes:
        say(f"note: {note}")
    if figures:
        print("\nnewest figures")
        print_fields({f"  {name}": value for name, value in figures.items() if name != "time"})
    for alert in alerts:
        if alert["rule"] == "wandb" and notes:  # they say it
            continue
        settled = alert.get("settled")
        parts = (alert["rule"], alert.get("severity"), at_step(alert).strip(), settled and "settled")
        kind = ", ".join(map(str, filter(None, parts)))
        told, proposed = one_line(str(alert["message"]), 600), one_line(str(settled or alert["action"]), 600)
        say(f"\nalert ({kind}): {told}\n  {proposed}")
    if plots_wanted(plot):
        print_plots([run])


def _named(summary: dict[str, Any]) -> dict[str, Any]:
    """The summary in words, times as the clock on the wall shows them."""
    from rl_cli.runs.times import local_text, local_zone, seconds_of

    told = dict(summary)
    of = told.pop("total_steps")
    told["step"] = f"{cell(told['step'])} of {of}" if of else told["step"]
    for name in ("started", "ended"):
        if (moment := seconds_of(told[name])) is not None:
            told[name] = f"{local_text(moment, 19)} {local_zone(moment)}"
    names = {"id": "run", "wandb_url": "W&B page", "dir": "folder"}
    return {names.get(name, name): value for name, value in told.items() if name != "wandb_url" or value}


def _quiet(run: Any, summary: dict[str, Any]) -> str | None:
    import time

    from rl_cli.runs.progress import progress_of

    if summary["state"] != "running":
        return None
    return progress_of(run).quiet(time.time(), run.config().health.stall_seconds)


def report_run(run: Any, format_: str | None, show: bool, as_json: bool) -> None:
    """Writes the report of a run and prints the short one.

    Args:
        run: A RunDir.
        format_: "html" or "md"; None writes both.
        show: Open the page in the browser.
        as_json: One JSON object instead, with the keys of `rl_get_results`.
    """
    import typer

    from rl_cli.runs.reports.report import WRITERS, results, text_summary, write_reports

    written = write_reports(run, [format_] if format_ else tuple(WRITERS))  # a pipe may close below
    if as_json:
        print_json(results(run))
    else:
        say(text_summary(run))
    for path in written:
        say(f"report: {path}", error=as_json)
    if show:
        typer.launch(str(written[0]))
