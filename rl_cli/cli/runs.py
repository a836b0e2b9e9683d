"""`rl-cli runs ...`: list, show, start, stop, logs, metrics, watch, report and compare training runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rl_cli.cli.app import JsonOption, YesOption, group
from rl_cli.cli.output import cell, print_json, print_json_lines, print_table
from rl_cli.cli.run_clean import clean_command
from rl_cli.cli.run_resume import resume_command
from rl_cli.cli.run_sync import sync_command
from rl_cli.core.cuts import one_line
from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.core.json_text import to_json
from rl_cli.core.settings import ensure_home, home, load_settings

app = group("Training runs: start one, see how it goes, stop it, read what came of it.")

RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="Its id, a unique beginning of it, 'latest', or wandb:ENTITY/PROJECT/RUN."
    ),
]
ReportFormat = Literal["html", "md"]
PlotOption = Annotated[
    bool | None, typer.Option("--plot/--no-plot", help="Draw curves; default: on a terminal.")
]


def _find(text: str, up_to_date: bool = True) -> Any:
    """The run; one of somebody else is looked at once more, unless `up_to_date` is false."""
    from rl_cli.runs.store import find_run

    found = find_run(home(), text)
    if up_to_date and found.id.startswith("wandb-"):
        from rl_cli.tracking.watcher import refresh

        if old := refresh(found):
            print(f"note: {old}", file=sys.stderr)
    return found


@app.command("list")
def list_command(
    json_: JsonOption = False,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="Only the newest so many.")] = None,
) -> None:
    """List all runs, newest first."""
    from rl_cli.runs.store import list_runs
    from rl_cli.runs.times import local_zone

    rows = [run.summary() for run in list_runs(home())[:limit]]
    if json_:
        print_json_lines(rows)
        return
    columns = ["run", "backend", "state", "step", "initial", "final", f"started ({local_zone()})", "reason"]
    print_table(columns, [_row(row) for row in rows], empty="no runs yet: rl-cli runs start ENV")


def _row(row: dict[str, Any]) -> list[Any]:
    from rl_cli.runs.times import local_text, seconds_of

    started = local_text(seconds_of(row["started"]))
    reason = one_line(cell(row["reason"] or ""), 60)
    steps = f"{cell(row['step'])}/{cell(row['total_steps'])}"
    accuracies = (row["eval"]["initial"], row["eval"]["final"])
    return [row["id"], row["backend"], row["state"], steps, *accuracies, started, reason]


@app.command("show")
def show_command(run: RunArgument, json_: JsonOption = False, plot: PlotOption = None) -> None:
    """Show one run: state, progress, accuracy, cost, alerts, curves."""
    from rl_cli.cli.run_details import show_run

    show_run(_find(run), json_, plot)


@app.command("start")
def start_command(
    environment: Annotated[
        str | None, typer.Argument(metavar="[ENV]", help="What to learn; may come from --config.")
    ] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="A named set of defaults.")] = None,
    backend: Annotated[
        str | None,
        typer.Option("--backend", metavar="trl|replay[:FILE]", help="Who trains; replay plays FILE."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="A YAML file of settings, or a run's run.yaml.")
    ] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="e.g. grpo.steps=40; repeatable.")
    ] = None,
    json_: JsonOption = False,
    yes: YesOption = False,
) -> None:
    """Start a run. It goes on by itself; nothing is asked."""
    from rl_cli.config.edit import resolve
    from rl_cli.config.machine import can_train
    from rl_cli.runs.backends import prepare
    from rl_cli.runs.launch import start_run
    from rl_cli.runs.start_warnings import start_warnings

    settings = load_settings()
    wanted = _changes(changes or [], backend)
    if backend == "replay" and config is None:
        wanted.setdefault("backend.file", "demo")
    if settings.seed is not None and config is None:
        wanted = {"seed": settings.seed, **wanted}
    resolved = resolve(environment, profile, wanted, file=config, extra_dir=settings.environments_dir)
    if resolved.backend.name == "trl":
        possible, why_not = can_train(resolved.profile)
        if not possible:
            raise BadUsage(f"this cannot be trained here: {why_not}", "rl-cli envs list shows what can")
    if resolved.backend.name == "replay" and "grpo.steps" in wanted:
        steps = prepare(resolved).grpo.steps
        if steps != resolved.grpo.steps:
            problem = f"grpo.steps={resolved.grpo.steps} cannot be played: the file of the replay has {steps}"
            raise BadUsage(problem, "leave grpo.steps out")
    warnings = start_warnings(resolved, ensure_home(), settings)
    started = start_run(resolved, ensure_home())
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if json_:
        print_json(started.summary())
    else:
        print(f"{started.id}: {started.state()['state']}")
        print(f"rl-cli runs watch {started.id}", file=sys.stderr)


def _changes(assignments: list[str], backend: str | None) -> dict[str, Any]:
    """--backend is two assignments, so that it cannot contradict a --set."""
    from rl_cli.config.fields import read_assignments

    texts = list(assignments)
    if backend is not None:
        name, _, file = backend.partition(":")
        texts.append(f"backend.name={to_json(name)}")
        if file:
            texts.append(f"backend.file={to_json(file)}")
    return read_assignments(texts)


@app.command("stop")
def stop_command(
    run: RunArgument,
    reason: Annotated[str, typer.Option("--reason", help="Kept with the run.")] = "asked on the command line",
    now: Annotated[bool, typer.Option("--now", help="Leave it no time to save.")] = False,
    json_: JsonOption = False,
) -> None:
    """Stop a run: it saves, is evaluated, and ends as `stopped`. Exit code 1 if it ended otherwise."""
    from rl_cli.cli.run_stop import stop_watched, tell_of_wait
    from rl_cli.runs.launch import is_suspended, stop_run
    from rl_cli.runs.state_file import is_over
    from rl_cli.runs.strays import NOT_ENDED, stray_processes

    found = _find(run, up_to_date=False)
    if found.id.startswith("wandb-"):
        stop_watched(found, reason, json_)
        return
    if is_over(known := found.state()) and not (known.get("damaged") and stray_processes(found)):
        print(f"nothing to stop: {found.id} is {known['state']}", file=sys.stderr)
    elif known["state"] in ("running", "stopping") and not now:
        tell_of_wait(found)
    state = stop_run(found, "user", reason, now=now)
    if json_:
        print_json(found.summary())
    else:
        print(f"{found.id}: {state['state']}")
    if not is_over(state):
        pid = (state.get("supervisor") or {}).get("pid")
        does = "is suspended" if is_suspended(state) else "has not ended it in time"
        hint = f"rl-cli runs stop {found.id} --now ends it without it" if not now else None
        raise WorkFailed(f"{found.id} is still {state['state']}: its supervisor (pid {pid}) {does}", hint)
    if state.get("damaged") and (left := stray_processes(found)):
        pids = ", ".join(str(one.pid) for one in left)
        raise WorkFailed(f"processes of {found.id} still run: {pids}", f"rl-cli runs stop {found.id} --now")
    if NOT_ENDED in (state.get("reason") or ""):
        raise WorkFailed(f"{found.id}: {state['reason']}", f"rl-cli runs clean {found.id}")
    if state["state"] not in ("finished", "stopped"):
        raise typer.Exit(1)


app.command("resume")(resume_command)
app.command("clean")(clean_command)
app.command("sync")(sync_command)


@app.command("logs")
def logs_command(
    run: RunArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run is over.")] = False,
    process: Annotated[
        str, typer.Option("--process", help="Whose log: trainer, supervisor, wandb, uploader, or a helper's.")
    ] = "trainer",
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Begin so many lines back.")] = 100,
    json_: JsonOption = False,
) -> None:
    """Print the log of one of a run's processes; structured lines readably, with --json as objects."""
    from rl_cli.cli.run_logs import show_logs

    show_logs(_find(run, up_to_date=False), process, lines, follow, json_)


@app.command("metrics")
def metrics_command(
    run: RunArgument,
    json_: JsonOption = False,
    last: Annotated[int | None, typer.Option("--last", min=1, help="Only the newest so many rows.")] = None,
) -> None:
    """Print a run's figures, one row per step."""
    rows = _find(run).metrics()[-(last or 0) :]
    if json_:
        print_json_lines(rows)
        return
    names = ("loss", "grad_norm", "reward/mean", "groups/with_signal", "entropy", "accuracy/validation")
    columns = ["phase", "step", *(name for name in names if any(name in row for row in rows))]
    table = [[row.get(column) for column in columns] for row in rows]
    print_table(columns, table, empty="no figures yet")


@app.command("watch")
def watch_command(run: RunArgument, json_: JsonOption = False) -> None:
    """Follow a run until it is over; Ctrl-C leaves it alone. Exit code 1 unless it did its work."""
    from rl_cli.cli.run_follow import watch_run

    watch_run(_find(run, up_to_date=False), json_)


@app.command("report")
def report_command(
    run: RunArgument,
    format_: Annotated[
        ReportFormat | None, typer.Option("--format", help="Which file to write; default: both.")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    json_: JsonOption = False,
) -> None:
    """Write report.html and report.md, and print the short report."""
    from rl_cli.cli.run_details import report_run

    report_run(_find(run), format_, open_, json_)


@app.command("compare")
def compare_command(
    runs: Annotated[list[str], typer.Argument(metavar="RUN RUN...", help="Two or more runs.")],
    json_: JsonOption = False,
    plot: PlotOption = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Also write a page with the curves."),
    ] = None,
) -> None:
    """Put runs side by side: configs, results, a paired test, curves."""
    from rl_cli.cli.run_compare import compare_runs

    if len(runs) < 2:
        raise BadUsage("compare needs two runs or more", "for example: rl-cli runs compare ID latest")
    compare_runs([_find(text) for text in runs], json_, plot, html)
