"""Watching a run to its end, judging it at every check, and the final report."""

from __future__ import annotations

from typing import Any

from environments.policies.operator.answers import (
    ENDED,
    accuracy_line,
    alert_lines,
    checkpoint_lines,
    duration,
    how_to_go_on,
    is_replay,
    is_watched,
    logs_line,
    progress_line,
    replay_mark,
    run_name,
    state_name,
)
from environments.policies.operator.failures import failure_text
from environments.policies.operator.fixed_sentences import translated
from environments.policies.operator.judgement import judge
from environments.policies.operator.steps import (
    Call,
    Declined,
    Procedure,
    Result,
    ToolFailed,
    figure,
    must,
    text,
)
from environments.policies.operator.wording import Voice

SAME_CHECKS = 20
"""After this many checks in a row that show nothing new, watching ends; the run goes on."""


def watch(started: Result, say: Voice, notes: list[str]) -> Procedure:
    """From a started run to its report. `started` is the result of rl_start_training."""
    run_id = started.need("run_id", str)
    first = figure(started.data.get("first_check_seconds"))
    soon = (
        say(
            f"the first check (after about {duration(first, say)})",
            f"首次检查（约 {duration(first, say)} 后）",
        )
        if first
        else say("the first check", "首次检查")
    )
    line = say(
        f"Run {run_id} is started. I wait for {soon}, an alert or the end.",
        f"运行 {run_id} 已启动。等待{soon}、警报或结束。",
    )
    if warning := text(started.data.get("warning")):
        line += "\n" + say(f"Warning: {warning}", f"警告：{warning}")
    return (yield from follow(run_id, say, line, notes))


def follow(run_id: str | None, say: Voice, line: str, notes: list[str], exists: bool = True) -> Procedure:
    """Waits for check after check, stops the run where that is called for, and reports at the end.

    Args:
        run_id: The run.
        say: The voice.
        line: Goes with the first check.
        notes: Lines that the report repeats.
        exists: The run is known to be there; else the first check shows whether it is.
    """
    known_alerts = same = 0
    decided: dict[str, str] = {}
    previous: dict[str, Any] = {}
    retried = False
    while True:
        status = yield Call("rl_check_status", {"run_id": run_id, "wait": True, **decided}, line)
        decided = {}
        if not status.ok and status.kind == "timeout" and not retried:
            retried = True
            line = say("The check ran out of time; I wait once more.", "检查超时，再等一次。")
            continue
        if not status.ok:
            lines = [failure_text(status, say)]
            if run_id and exists:
                lines.append(
                    say(
                        f"The run itself is not affected. Watch it: rl-cli runs watch {run_id}",
                        f"运行本身不受影响。继续观察：rl-cli runs watch {run_id}",
                    )
                )
            return Declined("\n".join(lines))
        retried, exists = False, True
        run, progress, alerts = status.section("run"), status.section("progress"), status.rows("alerts")
        run_id = text(run.get("id")) or run_id
        if status.data.get("why") == "end" or run.get("state") in ENDED:
            return (yield from report(run, say, notes))
        if status.data.get("why") == "interrupted":
            return left_running(run, progress, say)

        shown = {**status.data, "next_check_seconds": None}
        same = same + 1 if shown == previous else 0
        previous = shown
        if same >= SAME_CHECKS:
            return left_running(run, progress, say)
        new = alerts[known_alerts:] if len(alerts) >= known_alerts else alerts
        known_alerts = len(alerts)
        where = progress_line(progress, say)
        said = "\n".join(filter(None, [alert_lines(new, say), where]))
        if run.get("state") == "stopping":
            line = say(f"{said}: it is stopping; I wait for the end.", f"{said}：正在停止，等待结束。")
            continue
        verdict = judge(say, status.data, new)
        if verdict.stop and is_watched(run):
            line = say(
                f"{said}. I would stop it: {verdict.reason}. It is not ours, so I go on watching.",
                f"{said}。我会停止它：{verdict.reason}。但它不是我们的运行，因此继续观察。",
            )
            decided = {"decision": verdict.reason}
            continue
        if not verdict.stop:
            line = say(f"{said}. It goes on: {verdict.reason}.", f"{said}。继续：{verdict.reason}。")
            decided = {"decision": verdict.reason}
            continue
        try:
            yield from must(
                Call(
                    "rl_stop_training",
                    {"run_id": run_id, "reason": verdict.reason},
                    say(f"{said}. I stop it: {verdict.reason}.", f"{said}。停止训练：{verdict.reason}。"),
                )
            )
        except ToolFailed as failed:
            return f"{failure_text(failed.result, say)}\n{left_running(run, progress, say)}"
        line = say("Told to stop; I wait until it has saved and ended.", "已要求停止，等待其保存并结束。")


def left_running(run: dict[str, Any], progress: dict[str, Any], say: Voice) -> str:
    name, where = run_name(run), progress_line(progress, say)
    return say(
        f"I stop watching; run {name} goes on by itself ({where}).\nWatch it: rl-cli runs watch "
        f"{name}\nStop it: rl-cli runs stop {name}",
        f"我不再盯着；运行 {name} 会自行继续（{where}）。\n继续观察：rl-cli runs watch {name}\n停止："
        f"rl-cli runs stop {name}",
    )


def report(run: dict[str, Any], say: Voice, notes: list[str]) -> Procedure:
    """The results of an ended run as text."""
    name, failed = run_name(run), run.get("state") in ("failed", "lost")
    results = yield Call(
        "rl_get_results",
        {"run_id": name},
        say(
            f"The run has ended ({state_name(run, say)}). Reading its results.",
            f"运行已结束（{state_name(run, say)}），读取结果。",
        ),
    )
    if results.ok:
        return results_text(results, say, notes)
    if failed:
        # A run that failed early has no results; its own record is what there is to tell.
        return "\n".join(
            filter(None, [*ending(run, say), *notes, how_to_go_on(run, say), logs_line(name, say)])
        )
    return "\n".join([*ending(run, say), failure_text(results, say)])


def results_text(results: Result, say: Voice, notes: list[str]) -> str:
    """The report on a run, from rl_get_results."""
    run = results.section("run")
    name = run_name(run)
    lines = ending(run, say)
    gain = None if is_replay(run) else results.data.get("gain")
    accuracy = accuracy_line(results.section("eval") or run.get("eval"), gain, say)
    failed = run.get("state") in ("failed", "lost")
    if accuracy:
        lines.append(accuracy)
    elif run.get("state") not in ENDED:
        lines.append(say("It is not evaluated yet.", "尚未评估。"))
        go_on = f"rl-cli runs watch {name}"
        return "\n".join(
            [*lines, *notes, say(f"It goes on. Watch it: {go_on}", f"它仍在运行。继续观察：{go_on}")]
        )
    elif not failed:
        lines.append(
            say(
                "It was not evaluated, so there is no accuracy to report.", "没有评估，因此没有准确率可报告。"
            )
        )
    told = results.data.get("notes")
    lines += [translated(text(note), say) for note in told if text(note)] if isinstance(told, list) else []
    lines += [note for note in notes if note not in lines]
    lines += checkpoint_lines(results, say)
    if path := text(results.data.get("report")):
        lines.append(say(f"Report: {path}", f"报告：{path}"))
    lines += [how] if (how := how_to_go_on(run, say)) else []
    if is_watched(run):
        return "\n".join(lines)
    if failed:
        return "\n".join([*lines, *_log_lines(results.data), logs_line(name, say)])
    return "\n".join(
        [
            *lines,
            say(
                f"Next: rl-cli runs report {name}, or rl-cli runs compare {name} OTHER",
                f"下一步：rl-cli runs report {name}，或 rl-cli runs compare {name} 另一个运行",
            ),
        ]
    )


def end_text(results: Result, say: Voice) -> str:
    """What became of a run, in a few lines, for whoever was not asking: how it ended, accuracy, report."""
    run = results.section("run")
    accuracy = accuracy_line(
        results.section("eval"), None if is_replay(run) else results.data.get("gain"), say
    )
    path = text(results.data.get("report"))
    report_line = say(f"Report: {path}", f"报告：{path}") if path else ""
    return "\n".join(filter(None, [*ending(run, say), accuracy, report_line, how_to_go_on(run, say)]))


def ending(run: dict[str, Any], say: Voice) -> list[str]:
    """How and why a run ended, with its alerts."""
    name, state = run_name(run), state_name(run, say)
    step, total = run.get("step"), run.get("total_steps")
    mark = replay_mark(run, say)
    where = say(
        f"Run {name} ({text(run.get('environment'))}){mark}: {state}",
        f"运行 {name}（{text(run.get('environment'))}）{mark}：{state}",
    )
    if isinstance(step, int) and isinstance(total, int):
        where += say(f" after {step} of {total} steps", f"，完成 {step}/{total} 步")
    reason = translated(text(run.get("reason")), say)
    lines = [where + say(f". Reason: {reason}", f"。原因：{reason}") if reason else where + say(".", "。")]
    alerts = (
        [alert for alert in run.get("alerts") or [] if isinstance(alert, dict)]
        if isinstance(run.get("alerts"), list)
        else []
    )
    if alerts:
        lines.append(alert_lines(alerts[-3:], say))
    return lines


def _log_lines(data: dict[str, Any]) -> list[str]:
    """The end of the trainer's log, where the results have it."""
    found = data.get("last_log_lines")
    return [f"  {line}" for line in found[-10:] if isinstance(line, str)] if isinstance(found, list) else []
