"""Waiting for the end of what is done with a batch, looking at it, stopping it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from environments.policies.operator.batch_words import batch_text, state_text
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.failures import failure_text
from environments.policies.operator.intents import Batch, ListBatches, StopBatch
from environments.policies.operator.steps import Call, Declined, Procedure, Result, must, text
from environments.policies.operator.wording import Voice

SAME_LOOKS = 4
"""After so many half-hours in which nothing came, watching ends; the work goes on."""


def named(intent: Batch) -> dict[str, Any]:
    """The argument that names the batch, where the request does."""
    return {"name": intent.name} if intent.name else {}


def follow(name: str | None, say: Voice, line: str) -> Generator[Call, Result, Result | str]:
    """Waits until nothing works on a batch any more; its last status, or why the wait ended before."""
    same, previous = 0, ""
    while True:
        status = yield Call("data_status", {**({"name": name} if name else {}), "wait": True}, line)
        if not status.ok:
            return Declined(failure_text(status, say))
        batch = status.data
        if status.data.get("why") == "end":
            return status
        shown = batch_text({**batch, "seconds": None}, say)
        same = same + 1 if shown == previous else 0
        previous = shown
        if status.data.get("why") == "interrupted" or same >= SAME_LOOKS:
            told = say("I stop watching; it goes on by itself.", "我不再盯着；它会自行继续。")
            return f"{shown}\n{told}"
        line = shown


def watch(intent: Batch, say: Voice, conversation: Conversation) -> Procedure:
    ended = yield from follow(intent.name, say, say("I wait for its end.", "等待其结束。"))
    return ended if isinstance(ended, str) else batch_text(ended.data, say)


def status(intent: Batch, say: Voice, conversation: Conversation) -> Procedure:
    look = say("Looking at the batch.", "查看批次。")
    found = yield from must(Call("data_status", named(intent), look))
    return batch_text(found.data, say)


def list_batches(intent: ListBatches, say: Voice, conversation: Conversation) -> Procedure:
    found = yield from must(Call("data_status", {}, say("Looking up the batches.", "查看批次。")))
    known = [found.data, *found.rows("others")]
    return "\n".join(
        f"- {text(each.get('name'))}: {state_text(text(each.get('state')), say)}" for each in known
    )


def stop(intent: StopBatch, say: Voice, conversation: Conversation) -> Procedure:
    ask = say("Stopping the batch.", "停止批次。")
    stopped = yield from must(
        Call("data_stop", {**named(intent), **({"now": True} if intent.now else {})}, ask)
    )
    told = batch_text(stopped.data, say)
    if stopped.data.get("worked") is not True:
        return say(f"Nothing works on it.\n{told}", f"它没有在运行。\n{told}")
    if stopped.data.get("over") is True:
        return told
    return say(
        f"It was told to stop; what is in flight comes to its end first. To end that too, say: "
        f"stop the batch now\n{told}",
        f"已要求停止；正在进行的样本会先完成。要立即结束，请说：立即停止这批\n{told}",
    )
