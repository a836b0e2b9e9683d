"""What the person is told of a run's end: the model's words, made safe to believe, or ours in their place."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from rl_cli.core.cuts import one_line
from rl_cli.runs.outcome import notes, outcome_of
from rl_cli.runs.progress import progress_of
from rl_cli.runs.run_dir import RunDir
from tools.spec import RULES, Decision, NoDecision

SHOWN = 300
"""Characters of a decision by rule."""


def last_words(run: RunDir, answer: Decision | NoDecision) -> Decision:
    """What a model answered at the end of a run, as a decision with a message for the person.

    The message is empty only if the model decided `change`: what was asked for goes on after the run.
    """
    if isinstance(answer, NoDecision):
        reason = f"the run is at its end (no decision: {answer})"
        return Decision("continue", reason, answer.said or _composed(run, str(answer)))
    if answer.what == "change":
        return replace(answer, message="")
    if not answer.message:
        return Decision("continue", answer.reason, _composed(run, f"{answer.by} had nothing to say"))
    return replace(answer, what="continue")


def end_answer(run: RunDir, decision: Decision) -> str:
    """The last decision's message with what it may lack: the outcome, what no model judged, the report."""
    from rl_cli.runs.reports.report import results

    found = results(run)
    lines = [decision.message]
    if not _tells(decision.message, str(found["run"]["state"]), found["eval"].get("final")):
        lines.append(outcome_of(run))
    return "\n".join([*lines, *_decided_by_rule(run), f"Report: {found['report']}"])


def _composed(run: RunDir, why: str) -> str:
    """What became of a run, in words of ours: its outcome, what must be known to read it, its alerts.

    Args:
        why: They are not the model's.
    """
    known = progress_of(run)
    lines = [outcome_of(run), *notes(run, run.state(), run.events(), progress=known)]
    counted = Counter(str(alert.get("rule")) for alert in known.current_alerts)
    alerts = [f"{rule} ({n})" if n > 1 else rule for rule, n in counted.items()]
    lines += [f"Alerts: {', '.join(alerts)}."] if alerts else []
    return "\n".join([*lines, f"rl-cli wrote this, not the model: {why}."])


def _decided_by_rule(run: RunDir) -> list[str]:
    """A line about the decisions on the way that no model made; empty where there are none."""
    made = [e for e in run.events() if e.get("kind") == "decision" and e.get("why") in ("due", "alert")]
    ruled = [event for event in made if event.get("by") == RULES]
    if not ruled:
        return []
    last = one_line(f"{ruled[-1].get('what')}, {ruled[-1].get('reason')}", SHOWN)
    return [f"Decided by rule, not by the model: {len(ruled)} of {len(made)} checks; the last: {last}"]


def _tells(text: str, state: str, accuracy: float | None) -> bool:
    """Whether a text says how a run ended; of one that finished, its accuracy says it too."""
    names_state = state in text.casefold()
    if accuracy is None:
        return names_state
    return _names(text, accuracy) and (names_state or state == "finished")


def _names(text: str, accuracy: float) -> bool:
    """Whether a text gives this accuracy, in however many digits."""
    shares = [f"{accuracy + 1e-9:.{digits}f}" for digits in (2, 3, 4)]
    percents = [f"{100 * accuracy + 1e-9:.{digits}f}{sign}" for digits in (0, 1, 2) for sign in ("%", " %")]
    return any(figure in text for figure in [*shares, *percents])
