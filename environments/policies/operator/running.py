"""Looking at runs that exist, watching and stopping them."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

from environments.policies.operator import names
from environments.policies.operator.answers import ENDED, run_lines, run_name, state_name, status_text
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.intents import Intent, Stop
from environments.policies.operator.steps import Call, Declined, Procedure, Result, must, text
from environments.policies.operator.wandb_requests import wandb_runs
from environments.policies.operator.watching import follow, results_text
from environments.policies.operator.wording import Voice, shorten

ASKS_WHICH_FAILED = re.compile(
    r"\b(?:fail(?:ed|ing|ures?)?|crash(?:ed|es)?|broken|lost)\b|失败|崩溃|失联", re.IGNORECASE
)
ASKS_WHY_FAILED = re.compile(
    r"\bwhy\b.*\b(?:fail|crash)(?:ed)?\b|为(?:什么|何).*(?:失败|崩溃)", re.IGNORECASE
)
ASKS_FOR_ALERTS = re.compile(r"\b(?:alerts?|warnings?|healthy)\b|警报|健康", re.IGNORECASE)
BROKEN = ("failed", "lost")
"""States of runs that did not do what they were started for."""


def _look_at(run_id: str | None, say: Voice) -> Call:
    return Call(
        "rl_check_status", {"run_id": run_id, "wait": False}, say("Looking at the run.", "查看运行状态。")
    )


def _run_named(subject: str, say: Voice) -> Generator[Call, Result, str | None]:
    """The id of the run that `subject` names; None where it names none, which means the newest."""
    if watched := wandb_runs(subject):
        return f"wandb:{watched[0]}"
    words = names.named(subject)
    if not words:
        return None
    listing = yield from must(
        Call("rl_list_runs", {}, say(f"Looking up which run is {words[0]}.", f"查找 {words[0]} 是哪个运行。"))
    )
    found, unknown = names.runs(subject, listing.rows("runs"))
    # An unknown id goes to the tool as it is: its error names the nearest ones.
    return found[0] if found else unknown[0]


def status(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    run_id = yield from _run_named(intent.subject, say)
    found = yield from must(_look_at(run_id, say))
    told = status_text(found, say)
    run = found.section("run")
    if ASKS_WHY_FAILED.search(intent.subject) and run.get("state") not in BROKEN:
        told = say(f"{run_name(run)} did not fail.\n", f"{run_name(run)} 没有失败。\n") + told
        if run_id is None:
            told += yield from _newest_failure(say)
    elif ASKS_FOR_ALERTS.search(intent.subject) and not found.rows("alerts"):
        told += "\n" + say("It has raised no alert.", "它没有发出警报。")
    return told


def _newest_failure(say: Voice) -> Generator[Call, Result, str]:
    """Why the newest run that failed did, "" where none has."""
    look = Call("rl_list_runs", {}, say("Looking up which run failed.", "查看哪个运行失败了。"))
    listing = yield from must(look)
    failed = [row for row in listing.rows("runs") if row.get("state") in BROKEN]
    return (
        say("\nThe newest one that did:\n", "\n最近失败的运行：\n") + run_lines(failed[:1], say)
        if failed
        else ""
    )


def keep_watching(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    named = yield from _run_named(intent.subject, say)
    known, run_id = named is None, named or conversation.own_run()
    if run_id is None:
        active = yield from _active(say)
        if conversation.tried_to_start():
            none = say("This conversation has started no run.", "这次对话没有启动任何运行。")
            return none if not active else none + _these_go_on(active, say)
        if not active:
            return (yield from _newest_ended(say))
        run_id = text(active[0].get("id"))
    line = say(
        f"I wait for the next check of {run_id}, an alert or the end.",
        f"等待 {run_id} 的下一次检查、警报或结束。",
    )
    return (yield from follow(run_id, say, line, [], exists=known))


def _newest_ended(say: Voice) -> Procedure:
    """Who waits for the end of a run when none goes on is told of the end that there was."""
    none = say("No run is going on.", "没有正在进行的运行。")
    listing = yield from must(Call("rl_list_runs", {}, say("Looking up the newest run.", "查看最新的运行。")))
    newest = next((row for row in listing.rows("runs") if text(row.get("id"))), None)
    if newest is None:
        return Declined(none)
    found = yield from must(_look_at(text(newest["id"]), say))
    ended, state = text(newest.get("ended"))[:19].replace("T", " "), newest.get("state")
    at = say(f" at {ended} UTC", f"于 {ended} UTC ") if ended else ""
    head = say(f"{none} The newest one ended{at}:", f"{none}最新的运行{at}已结束：")
    told = f"{head}\n{status_text(found, say)}"
    if state in (*BROKEN, "stopped"):
        told += "\n" + say("To have me go on with it, say: resume the run", "要我继续训练它，请说：恢复训练")
    return Declined(told) if state in BROKEN else told


def results(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    run_id = yield from _run_named(intent.subject, say)
    found = yield from must(
        Call("rl_get_results", {"run_id": run_id}, say("Reading the results.", "读取结果。"))
    )
    return results_text(found, say, [])


def list_runs(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    listing = yield from must(Call("rl_list_runs", {}, say("Looking up the runs.", "查看运行列表。")))
    rows = listing.rows("runs")
    if not rows:
        return say("There are no runs yet.", "还没有任何运行。")
    if ASKS_WHICH_FAILED.search(intent.subject):
        failed = [row for row in rows if row.get("state") in BROKEN]
        if not failed:
            return say("None of the runs has failed.", "没有失败的运行。")
        return say("Runs that failed, newest first:\n", "失败的运行（从新到旧）：\n") + run_lines(failed, say)
    return say("Runs, newest first:\n", "运行（从新到旧）：\n") + run_lines(rows, say)


def stop(intent: Stop, say: Voice, conversation: Conversation) -> Procedure:
    words, own = names.content_words(intent.subject), conversation.own_run()
    active = yield from _active(say)
    ids = [text(row.get("id")) for row in active]
    if not active:
        return say("No run is going on, so there is nothing to stop.", "没有正在进行的运行，无需停止。")
    if intent.every:
        targets = ids
    elif words:
        found, _ = names.runs(intent.subject, active)
        targets = found or _by_environment(intent.subject, active)
        if not targets:
            said = shorten(" ".join(words))
            none = say(
                f'No run that goes on is called "{said}", so I stopped none.',
                f"正在进行的运行里没有“{said}”，因此没有停止任何运行。",
            )
            return none + _these_go_on(active, say)
    elif own and own not in ids:
        ended = say(f"Run {own} has ended, so I stopped none.", f"运行 {own} 已经结束，没有停止任何运行。")
        return ended + _these_go_on(active, say)
    else:
        targets = [own or ids[0]]
    lines = []
    for target in targets:
        stopped = yield from must(
            Call(
                "rl_stop_training",
                {"run_id": target, "reason": say("asked for by the person", "用户要求停止")},
                say(f"Stopping {target}.", f"停止 {target}。"),
            )
        )
        run_id, state, step = (
            text(stopped.data.get("run_id")),
            state_name(stopped.data, say),
            stopped.data.get("step"),
        )
        at = say(f" at step {step}", f"，停在第 {step} 步") if isinstance(step, int) else ""
        lines.append(
            say(
                f"Run {run_id}: {state}{at}. Its results: rl-cli runs show {run_id}",
                f"运行 {run_id}：{state}{at}。结果：rl-cli runs show {run_id}",
            )
        )
    return "\n".join(lines)


def _active(say: Voice) -> Generator[Call, Result, list[dict[str, Any]]]:
    """The runs that go on, newest first."""
    look = Call("rl_list_runs", {}, say("Looking up which runs go on.", "查看正在进行的运行。"))
    listing = yield from must(look)
    return [row for row in listing.rows("runs") if row.get("state") not in ENDED and text(row.get("id"))]


def _these_go_on(active: list[dict[str, Any]], say: Voice) -> str:
    return say(" These go on:\n", "正在进行的：\n") + run_lines(active, say)


def _by_environment(subject: str, rows: list[dict[str, Any]]) -> list[str]:
    """The newest of `rows` whose environment `subject` names in words ("the tool math run")."""
    known = [{"name": name} for name in dict.fromkeys(text(row.get("environment")) for row in rows)]
    match = names.environment(subject, known)
    return [
        text(row.get("id")) for row in rows if match.kind == "exact" and row.get("environment") == match.name
    ][:1]
