"""Projects and runs in W&B: listing, comparing, stopping. Watching one is as with any run."""

from __future__ import annotations

from typing import Any

from environments.policies.operator import names
from environments.policies.operator.answers import show
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.intents import WandbCompare, WandbList, WandbStop
from environments.policies.operator.steps import Call, Declined, Procedure, Result, must, text
from environments.policies.operator.wandb_requests import NAME, SERVICE, wandb_project, wandb_runs
from environments.policies.operator.wording import Voice

FIGURES = 3
"""Figures of a run's summary that are shown in a list."""


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
        runs += [f"{project}/{word}" for word in names.content_words(rest) if len(word) > 1]
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
    return compared_text(compared, say)


def stop_in_wandb(intent: WandbStop, say: Voice, conversation: Conversation) -> Procedure:
    lines = []
    for run in wandb_runs(intent.subject):
        stopped = yield from must(
            Call(
                "wandb_stop_run",
                {"run": run, "reason": say("asked for by the person", "用户要求停止")},
                say(f"Asking W&B to stop {run}.", f"请 W&B 停止 {run}。"),
            )
        )
        lines.append(stopped_text(stopped, run, say))
    return "\n".join(lines)


def stopped_text(stopped: Result, run: str, say: Voice) -> str:
    state = text(stopped.data.get("state")) or "?"
    if stopped.data.get("requested") is False:
        return say(f"{run} was {state} already.", f"{run} 已经是 {state}。")
    return say(
        f"W&B was asked to stop {run} (it was {state}); its process hears of it within a minute or so. "
        f"To see it end: watch wandb:{run}",
        f"已请 W&B 停止 {run}（当时状态 {state}）；训练进程大约一分钟内会得知。要看它结束：观察 wandb:{run}",
    )


def compared_text(compared: Result, say: Voice) -> str:
    """Each run in a line, then what differs in their configs."""
    lines = [_run_line(row, say) for row in compared.rows("runs")]
    differences = compared.section("config")
    lines += [f"  {name}: {values}" for name, values in differences.items()]
    return "\n".join(lines)


def _run_line(row: dict[str, Any], say: Voice) -> str:
    summary = row.get("summary")
    figures = [f"{name} {show(value)}" for name, value in (summary or {}).items() if not name.startswith("_")]
    shown = ", ".join(figures[:FIGURES])
    step = say(f"step {show(row.get('last_step'))}", f"第 {show(row.get('last_step'))} 步")
    name = text(row.get("name"))
    line = f"- {text(row.get('path')) or text(row.get('id'))}" + (f" ({name})" if name else "")
    return f"{line}: {text(row.get('state'))}, {step}" + (f", {shown}" if shown else "")
