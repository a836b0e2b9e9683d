"""Making samples: from the file to the rows, and on to what is to be done with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from environments.policies.operator import batch_rows
from environments.policies.operator.batch_watching import follow
from environments.policies.operator.batch_words import batch_text
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.intents import (
    Batch,
    BatchStats,
    CompressBatch,
    ExportBatch,
    Intent,
    MakeSamples,
    MergeBatch,
    ShowSamples,
)
from environments.policies.operator.steps import Call, Declined, Procedure, must, text
from environments.policies.operator.wording import Voice

BUSY = ("starting", "running", "merging")
THEN: dict[type[Intent], Callable[[Any, Voice, Conversation], Procedure]] = {
    CompressBatch: batch_rows.compress,
    ExportBatch: batch_rows.export,
    MergeBatch: batch_rows.merge,
    BatchStats: batch_rows.stats,
    ShowSamples: batch_rows.show_samples,
}
"""What can be done with the rows once they are there."""


def may_make(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    return say(
        "A question starts nothing. To start, say it as an order; you are asked first, with what it would "
        "cost. For example: make 100 samples from prompts.jsonl with the math tools",
        "提问不会启动任何任务。要开始，请直接下指令；执行前会先告知费用并征求同意。"
        "例如：用 prompts.jsonl 生成 100 条样本，使用 math 工具",
    )
    yield


def make(intent: MakeSamples, say: Voice, conversation: Conversation) -> Procedure:
    if intent.input is None:
        return Declined(
            say(
                "From which file? For example: make 100 samples from prompts.jsonl with the math tools",
                "用哪个文件？例如：用 prompts.jsonl 生成 100 条样本，使用 math 工具",
            )
        )
    if any(isinstance(more, ExportBatch) and more.format is None for more in intent.then):
        return Declined(batch_rows.which_format(say))
    given: dict[str, Any] = {"input": intent.input, "name": intent.name, "model": intent.model}
    given |= {"distribution": intent.distribution, "count": intent.count}
    given["toolsets"] = None if intent.toolsets is None else list(intent.toolsets)
    settings = ({"samples": intent.each} if intent.each else {}) | dict(intent.settings)
    given["settings"] = settings or None
    return (
        yield from _begun({k: v for k, v in given.items() if v is not None}, intent.then, say, conversation)
    )


def go_on(intent: Batch, say: Voice, conversation: Conversation) -> Procedure:
    """A batch that was stopped or failed, with the settings that it was begun with."""
    name = intent.name
    if name is None:
        look = say("Looking up the batch.", "查看批次。")
        status = yield from must(Call("data_status", {}, look))
        if (batch := status.data).get("state") in BUSY:
            return batch_text(batch, say)
        name = text(batch.get("name"))
    return (yield from _begun({"name": name}, (), say, conversation))


def _begun(
    arguments: dict[str, Any], then: tuple[Batch, ...], say: Voice, conversation: Conversation
) -> Procedure:
    """From the start of a batch to its end, and on to what is to be done with its rows."""
    started = yield from must(
        Call("data_generate", arguments, say("Starting the batch.", "启动数据生成批次。"))
    )
    name = started.need("name", str)
    line = say(
        f"Batch {name} goes on by itself. I wait for its end.", f"批次 {name} 已在后台运行，等待其结束。"
    )
    there = say("All its samples are there already: nothing was asked.\n", "所有样本都已存在：没有再提问。\n")
    ended = yield from follow(name, say, line)
    if isinstance(ended, str):
        return ended
    batch = ended.data
    said = batch_text({**batch, "compression": None}, say)  # an earlier one's
    said = (there if started.data.get("to_ask") == 0 else "") + said
    if batch.get("state") != "finished" or not batch.get("merged"):
        left = say("\nNothing more was done with it.", "\n后续步骤没有执行。") if then else ""
        return Declined(said + left)
    texts, which = [said], "merged"
    for more in then:
        more = replace(more, name=name)
        if isinstance(more, ExportBatch):
            more = replace(more, which=which)
        which = "compressed" if isinstance(more, CompressBatch) else which
        done = yield from THEN[type(more)](more, say, conversation)
        texts.append(done)
        if isinstance(done, Declined):
            return Declined("\n\n".join(texts))
    return "\n\n".join(texts)
