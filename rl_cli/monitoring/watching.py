"""Watches a run through all its checks: each is judged compactly, logged with its evidence, and acted on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from environments.policies.operator.judgement import judge as judge_by_rules
from environments.policies.operator.wording import Voice
from environments.tool_calls import first_of
from rl_cli.core.cuts import one_line
from rl_cli.monitoring.bounded_calls import ANSWER_SECONDS
from rl_cli.monitoring.heartbeat import LATE_SECONDS
from rl_cli.monitoring.last_words import last_words
from rl_cli.runs.checks.clock import SystemClock, seconds_between
from rl_cli.runs.checks.digest import digest, evidence
from rl_cli.runs.checks.due_checks import DueChecks
from rl_cli.runs.checks.monitor import LOOK_EVERY_SECONDS, CheckOutcome, OnProgress, status_of, wait_for_check
from rl_cli.runs.launch import stop_run
from rl_cli.runs.run_dir import RunDir
from tools.spec import Decision, Judge, NoDecision


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
        the end of a run where there is nothing to be told.

    Where the model cannot be asked, the rules decide, and the log says so. At the end there is nothing to
    decide: see `last_words`.
    """
    checks, begun = DueChecks(run), SystemClock().now()
    try:
        decision = await _asked(run, outcome, judge, interrupted)
    except BaseException:  # cancelled: somebody else may judge it
        with suppress(TimeoutError):  # files that do not answer
            async with asyncio.timeout(ANSWER_SECONDS):
                await asyncio.shield(asyncio.to_thread(checks.give_back))
        raise
    if decision is None:
        await asyncio.to_thread(checks.give_back)
        return None
    away = seconds_between(begun, SystemClock().now()) > LATE_SECONDS
    if away and outcome.why != "end" and not await asyncio.to_thread(checks.is_held):
        return None  # we were stopped meanwhile, and somebody else has judged it
    await asyncio.to_thread(_carry_out, run, decision, outcome, by)
    return None if outcome.why == "end" and not decision.message else decision


def _carry_out(run: RunDir, decision: Decision, outcome: CheckOutcome, by: str) -> None:
    with suppress(OSError):  # a full disk: what was decided is done all the same
        run.append_event("decision", **_record(decision, outcome))
    if decision.what == "stop":
        stop_run(run, by, decision.reason, wait=False)
    DueChecks(run).settled()


async def _asked(
    run: RunDir, outcome: CheckOutcome, judge: Judge | None, interrupted: asyncio.Event | None
) -> Decision | None:
    """The model's decision, else that of the rules; None if the person interrupted."""
    if judge is None:
        return await asyncio.to_thread(_by_rules, run, outcome)
    assert outcome.why != "interrupted"
    text = await asyncio.to_thread(digest, run, outcome.why, outcome.alerts, outcome.progress)
    done = await first_of(judge(text), interrupted, None)
    if done is None:
        return None
    answer: Decision | NoDecision
    try:
        answer = done.result()
    except NoDecision as error:
        answer = error
    if outcome.why == "end":
        return await asyncio.to_thread(last_words, run, answer)
    if isinstance(answer, Decision):
        return _within_rights(run, answer)
    decided = await asyncio.to_thread(_by_rules, run, outcome)
    return replace(decided, reason=f"{decided.reason} (decided by rule: {answer})")


def _by_rules(run: RunDir, outcome: CheckOutcome) -> Decision:
    """What the built-in operator decides."""
    if outcome.why == "end":
        return Decision("continue", "the run is at its end")
    found = judge_by_rules(Voice(""), status_of(run, outcome), outcome.alerts)
    decided = Decision("stop" if found.stop else "continue", one_line(found.reason, 300))
    return _within_rights(run, decided)


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
