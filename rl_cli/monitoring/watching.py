"""Watches a run through all its checks: each is judged compactly, logged with its evidence, and acted on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from environments.policies.operator.judgement import judge as judge_by_rules
from environments.policies.operator.wording import Voice
from environments.tool_calls import first_of
from rl_cli.core.cuts import one_line
from rl_cli.monitoring.heartbeat import LATE_SECONDS
from rl_cli.runs.checks.clock import SystemClock, seconds_between
from rl_cli.runs.checks.digest import digest, evidence
from rl_cli.runs.checks.due_checks import DueChecks
from rl_cli.runs.checks.monitor import LOOK_EVERY_SECONDS, CheckOutcome, OnProgress, status_of, wait_for_check
from rl_cli.runs.launch import stop_run
from rl_cli.runs.outcome import notes, outcome_of
from rl_cli.runs.progress import progress_of
from rl_cli.runs.run_dir import RunDir
from tools.spec import Decision, Judge, NoDecision

RULES = "rules"


@dataclass(frozen=True)
class Watched:
    """Why watching ended."""

    outcome: CheckOutcome
    """Its `why` is "end", "interrupted", or that of the check that was decided."""
    decision: Decision | None = None
    """Of the last judgement; None if the person interrupted, or nobody was asked for words at the end."""


async def watch(
    run: RunDir,
    judge: Judge | None,
    by: str,
    interrupted: asyncio.Event | None = None,
    on_progress: OnProgress | None = None,
    look_every: float = LOOK_EVERY_SECONDS,
    end_once: bool = False,
    on_look: Callable[[], None] | None = None,
) -> Watched:
    """Waits through the checks of a run until it has ended, or somebody else has to decide.

    `continue` goes on; `stop` stops the run and goes on to its end.

    Args:
        run: The run.
        judge: Who judges; None: the rules do.
        by: Who stops the run, as its reason names them.
        interrupted: Set by the person who wants the wait to end.
        on_progress: See `wait_for_check`.
        look_every: Seconds between two looks at its files.
        end_once: Leave the end alone where somebody else has judged it.
        on_look: Called at each look.
    """
    while True:
        outcome = await wait_for_check(run, interrupted, on_progress, True, look_every, on_look)
        if outcome.why == "interrupted":
            return Watched(outcome)
        if outcome.state["state"] == "stopping":  # it is decided
            await asyncio.to_thread(DueChecks(run).settled)
            continue
        if outcome.why == "end" and not await asyncio.to_thread(DueChecks(run).take_end) and end_once:
            return Watched(outcome)
        decision = await decide(run, outcome, judge, by, interrupted)
        if decision is None and interrupted is not None and interrupted.is_set():
            return Watched(replace(outcome, why="interrupted"))
        if outcome.why == "end" or (decision and decision.what in ("change", "ask")):
            return Watched(outcome, decision)


async def decide(
    run: RunDir, outcome: CheckOutcome, judge: Judge | None, by: str, interrupted: asyncio.Event | None = None
) -> Decision | None:
    """Judges a check that was taken and held, logs the decision with its evidence, and carries out a `stop`.

    Returns:
        The decision; None if the person interrupted, if it was taken from us because we seemed to hang, or at
        the end of a run that no model judges.

    Where the model cannot be asked, the rules decide, and the log says so. At the end there is nothing to
    decide: what a model says then is its answer however it says it, and where it says nothing we do. A model
    that calls other tools instead goes on in its conversation.
    """
    checks, begun = DueChecks(run), SystemClock().now()
    try:
        decision = await _asked(run, outcome, judge, interrupted)
    except BaseException:  # cancelled: somebody else may judge it
        await asyncio.shield(asyncio.to_thread(checks.give_back))
        raise
    if decision is None:
        await asyncio.to_thread(checks.give_back)
        return None
    away = seconds_between(begun, SystemClock().now()) > LATE_SECONDS
    if away and outcome.why != "end" and not await asyncio.to_thread(checks.is_held):
        return None  # we were stopped meanwhile, and somebody else has judged it
    with suppress(OSError):  # a full disk: what was decided is done all the same
        run.append_event("decision", **_record(decision, outcome))
    if decision.what == "stop" and outcome.why != "end":
        await asyncio.to_thread(stop_run, run, by, decision.reason, False)
    await asyncio.to_thread(checks.settled)
    return None if outcome.why == "end" and not decision.message else decision


async def _asked(
    run: RunDir, outcome: CheckOutcome, judge: Judge | None, interrupted: asyncio.Event | None
) -> Decision | None:
    """The model's decision, else that of the rules; None if the person interrupted."""
    if judge is None:
        return await asyncio.to_thread(by_rules, run, outcome)
    assert outcome.why != "interrupted"
    text = await asyncio.to_thread(digest, run, outcome.why, outcome.alerts, outcome.progress)
    done = await first_of(_call(judge, text), interrupted, None)
    if done is None:
        return None
    answer = done.result()
    if outcome.why == "end":
        return await asyncio.to_thread(_last_words, run, answer)
    if isinstance(answer, Decision):
        return _within_rights(run, answer)
    decided = await asyncio.to_thread(by_rules, run, outcome)
    return replace(decided, reason=f"{decided.reason} (decided by rule: {answer})")


async def _call(judge: Judge, text: str) -> Decision | NoDecision:
    try:
        return await judge(text)
    except NoDecision as error:
        return error


def _last_words(run: RunDir, answer: Decision | NoDecision) -> Decision:
    """The decision at the end of a run; without a message only where the model wants to act first."""
    if isinstance(answer, Decision):
        return replace(answer, what="continue", message=answer.message or _composed(run))
    reason = f"the run is at its end (no decision: {answer})"
    if answer.acts:
        return Decision("continue", reason, by=RULES)
    message = answer.said or f"{_composed(run)}\nrl-cli wrote this, not the model: {answer}."
    return Decision("continue", reason, message, RULES)


def _composed(run: RunDir) -> str:
    """What became of a run, in words of ours: its outcome, what must be known to read it, its alerts."""
    known = progress_of(run)
    lines = [outcome_of(run), *notes(run, run.state(), run.events(), progress=known)]
    counted = Counter(str(alert.get("rule")) for alert in known.current_alerts)
    alerts = [f"{rule} ({n})" if n > 1 else rule for rule, n in counted.items()]
    return "\n".join([*lines, *([f"Alerts: {', '.join(alerts)}."] if alerts else [])])


def by_rules(run: RunDir, outcome: CheckOutcome) -> Decision:
    """What the built-in operator decides."""
    if outcome.why == "end":
        return Decision("continue", "the run is at its end", by=RULES)
    found = judge_by_rules(Voice(""), status_of(run, outcome), outcome.alerts)
    decided = Decision("stop" if found.stop else "continue", one_line(found.reason, 300), by=RULES)
    return _within_rights(run, decided)


def end_answer(run: RunDir, decision: Decision) -> str:
    """The model's last words on a run, made safe to believe: the figures and the report's path are ours."""
    from rl_cli.runs.reports.report import results

    found = results(run)
    lines = [decision.message]
    if not _names(decision.message, found["eval"].get("final")):
        lines.append(outcome_of(run))
    return "\n".join([*lines, f"Report: {found['report']}"])


def _within_rights(run: RunDir, decision: Decision) -> Decision:
    """A run that somebody else started is stopped on the person's word only."""
    if decision.what != "stop" or run.state().get("backend") != "wandb":
        return decision
    message = decision.message or f"Should run {run.id} be stopped? {decision.reason}"
    return replace(decision, what="ask", message=message)


def _record(decision: Decision, outcome: CheckOutcome) -> dict[str, Any]:
    what = "end" if outcome.why == "end" else decision.what
    record: dict[str, Any] = {
        "by": decision.by,
        "what": what,
        "reason": decision.reason,
        "why": outcome.why,
        "evidence": evidence(outcome.progress, outcome.alerts),
    }
    return {**record, "message": decision.message} if decision.message else record


def _names(text: str, accuracy: float | None) -> bool:
    """Whether a text gives this accuracy, in however many digits; True where there is none to give."""
    if accuracy is None:
        return True
    shown: Sequence[str] = [f"{accuracy + 1e-9:.{digits}f}" for digits in (2, 3, 4)]
    percent = [f"{100 * accuracy + 1e-9:.{digits}f}" for digits in (0, 1, 2)]
    return any(figure in text for figure in [*shown, *(f"{figure}%" for figure in percent)]) or any(
        f"{figure} %" in text for figure in percent
    )
