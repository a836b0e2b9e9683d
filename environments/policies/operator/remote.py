"""Projects and runs in W&B: listing, comparing, stopping. Watching one is as with any run."""

from __future__ import annotations

from typing import Any

from environments.policies.operator import names
from environments.policies.operator.answers import show
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.intents import WandbCompare, WandbList, WandbStop
from environments.policies.operator.steps import Call, Declined, Procedure, Result, figure, must, text
from environments.policies.operator.wandb_requests import NAME, SERVICE, wandb_project, wandb_runs
from environments.policies.operator.wording import Voice, shorten

FIGURES = 3
"""Figures of a run's summary that are shown in a list."""
ORDERING = ("compare", "versus", "vs", "between", "against", "please")
DIFFERENCES = 20
"""Settings that are shown where configs differ."""


def list_in_wandb(intent: WandbList, say: Voice, conversation: Conversation) -> Procedure:
    if (project := wandb_project(intent.subject)) is not None:
        look = say(f"Looking up the runs of {project} in W&B.", f"查看 W&B 中 {project} 的运行。")
        listing = yield from must(Call("wandb_list_runs", {"project": project}, look))
        rows = listing.rows("runs")
        if not rows:
            return say(f"{project} has no runs.", f"{project} 还没有运行。")
        head = say(f"Runs of {project}, newest first:", f"{project} 的运行（从新到旧）：")
        return "\n".join([head, *(_run_line(row, say) for row in rows)])
    listing = yield from must(
        Call("wandb_list_projects", {}, say("Looking up the projects in W&B.", "查看 W&B 中的项目。"))
    )
    rows = listing.rows("projects")
    if not rows:
        return say("There are no projects in W&B.", "W&B 中还没有项目。")
    lines = [f"- {text(row.get('entity'))}/{text(row.get('name'))}" for row in rows]
    example = lines[0].removeprefix("- ")
    more = say(f"Its runs: list the W&B runs of {example}", f"查看运行：列出 W&B 项目 {example} 的运行")
    return "\n".join([say("Projects in W&B:", "W&B 中的项目："), *lines, more])


def compare_in_wandb(intent: WandbCompare, say: Voice, conversation: Conversation) -> Procedure:
    runs = wandb_runs(intent.subject)
    if (project := wandb_project(intent.subject)) is not None:
        rest = SERVICE.sub(" ", NAME.sub(" ", intent.subject))
        runs += [f"{project}/{word}" for word in names.content_words(rest) if word.lower() not in ORDERING]
    runs = list(dict.fromkeys(runs))
    if len(runs) < 2:
        return Declined(
            say(
                "Which two? Name each as entity/project/run: compare W&B runs acme/math/a1 and acme/math/b2",
                "比较哪两个？请写成 entity/project/run：比较 W&B 运行 acme/math/a1 和 acme/math/b2",
            )
        )
    compared = yield from must(
        Call("wandb_compare_runs", {"runs": runs}, say("Reading both in W&B.", "读取 W&B 中的这些运行。"))
    )
    return _compared(compared, say)


def stop_in_wandb(intent: WandbStop, say: Voice, conversation: Conversation) -> Procedure:
    lines = []
    for run in wandb_runs(intent.subject):
        ask = say(f"Asking W&B to stop {run}.", f"请 W&B 停止 {run}。")
        stopped = yield from must(Call("wandb_stop_run", {"run": run}, ask))
        lines.append(_stopped(stopped, run, say))
    return "\n".join(lines)


def _stopped(stopped: Result, run: str, say: Voice) -> str:
    state = text(stopped.data.get("state")) or "?"
    if stopped.data.get("requested") is False:
        return say(f"W&B says that {run} does not run ({state}).", f"W&B 说 {run} 没有在运行（{state}）。")
    if stopped.data.get("requested") is not True:
        return f"{run}: {text(stopped.data.get('note'))}"
    return say(
        f"W&B was asked to stop {run}; it hears of it within a minute if it logs online. "
        f"To see it end, say: watch wandb:{run}",
        f"已请 W&B 停止 {run}；如果它在线记录，一分钟内会得知。要看它结束，请说：观察 wandb:{run}",
    )


def _compared(compared: Result, say: Voice) -> str:
    """Each run in a line, then where their configs differ."""
    lines = [_run_line(row, say) for row in compared.rows("runs")]
    lines += [f"- {path}: {error}" for path, error in compared.section("unknown").items()]
    differs = compared.section("config_differs")
    if differs:
        lines.append(say("Their configs differ in:", "配置的不同之处："))
    for name, values in list(differs.items())[:DIFFERENCES]:
        shown = " | ".join(str(value) for value in values) if isinstance(values, list) else str(values)
        lines.append(f"  {name}: {shorten(shown, 160)}")
    if (left := len(differs) - DIFFERENCES) > 0:
        lines.append(say(f"  ... {left} more", f"  …… 另有 {left} 项"))
    return "\n".join(lines)


def _run_line(row: dict[str, Any], say: Voice) -> str:
    known = row.get("summary")
    summary = known if isinstance(known, dict) else {}
    figures = [f"{name} {show(value)}" for name, value in summary.items() if figure(value) is not None]
    step = say(f"step {show(row.get('last_step'))}", f"第 {show(row.get('last_step'))} 步")
    name = text(row.get("name"))
    line = f"- {text(row.get('path'))}" + (f" ({name})" if name else "") + f": {text(row.get('state'))}"
    return ", ".join([line, step, *figures[:FIGURES]])
