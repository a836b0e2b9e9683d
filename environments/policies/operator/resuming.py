"""Going on with a run that has ended: the named one, else the conversation's own, else the newest."""

from __future__ import annotations

from environments.policies.operator import names
from environments.policies.operator.answers import ENDED, run_lines, settings_line, state_name
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.failures import failure_text
from environments.policies.operator.fixed_sentences import translated
from environments.policies.operator.intents import Resume
from environments.policies.operator.steps import Call, Declined, Procedure, Result, must, text
from environments.policies.operator.watching import follow
from environments.policies.operator.wording import Voice, shorten

SHOWN = 5
"""Runs that are named where none fits."""
ORDERING = frozenset(
    {"resume", "continue", "carry", "proceed", "pick", "left", "off", "checkpoint", "checkpoints", "where"}
    | {"ended", "stopped", "failed", "lost", "crashed", "killed", "interrupted", "newest", "previous", "its"}
)
"""Words of an order to resume that name no run."""


def resume(intent: Resume, say: Voice, conversation: Conversation) -> Procedure:
    listing = yield from must(Call("rl_list_runs", {}, say("Looking up the runs.", "查看运行列表。")))
    rows = [row for row in listing.rows("runs") if text(row.get("id"))]
    if not rows:
        return Declined(say("There are no runs yet, so there is none to resume.", "还没有运行，无可恢复。"))
    by_id = {text(row["id"]): row for row in rows}
    words = [word for word in names.content_words(intent.subject) if word.casefold() not in ORDERING]
    found, unknown = names.runs(intent.subject, rows)
    if not found and (unknown or words):
        said = shorten(" ".join(unknown or words))
        none = say(f'No run is called "{said}". Newest:\n', f"没有叫“{said}”的运行。最新的：\n")
        return Declined(none + run_lines(rows[:SHOWN], say))
    own = conversation.own_run()
    run_id = found[0] if found else own if own in by_id else next(iter(by_id))
    run = by_id[run_id]
    if run.get("state") not in ENDED:
        return say(
            f"Run {run_id} is {state_name(run, say)}, so there is nothing to resume. "
            f"To watch it, say: watch {run_id}",
            f"运行 {run_id} {state_name(run, say)}，无需恢复。要观察它，请说：观察 {run_id}",
        )
    changes = intent.settings.changes
    told = settings_line(changes)
    line = say(
        f"Run {run_id} is {state_name(run, say)}. I go on with it" + (f", with {told}." if told else "."),
        f"运行 {run_id}：{state_name(run, say)}。继续训练" + (f"（{told}）。" if told else "。"),
    )
    arguments = {"run_id": run_id, **({"changes": changes} if changes else {})}
    resumed = yield Call("rl_resume_training", arguments, line)
    if not resumed.ok:
        why = failure_text(resumed, say)
        return Declined(say(f"{why}\nNothing was started.", f"{why}\n没有启动任何训练。"))
    return (yield from follow(run_id, say, _begun(resumed, run_id, say), []))


def _begun(resumed: Result, run_id: str, say: Voice) -> str:
    """From where it goes on, and what a person should know of it."""
    how = translated(text(resumed.data.get("how")), say)
    notes = resumed.data.get("notes")
    more = [f"{text(note)}." for note in notes if text(note)] if isinstance(notes, list) else []
    wait = say("I wait for a check, an alert or the end.", "等待检查、警报或结束。")
    return " ".join([f"{run_id}: {how}.", *more, wait])
