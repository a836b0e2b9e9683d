"""What is done with the rows of a batch: merging, counting, reading, compressing, exporting."""

from __future__ import annotations

from typing import Any

from environments.policies.operator.answers import show
from environments.policies.operator.batch_watching import follow, named
from environments.policies.operator.batch_words import compression_text
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.intents import Batch, CompressBatch, ExportBatch, ShowSamples
from environments.policies.operator.steps import Call, Declined, Procedure, must, text
from environments.policies.operator.wording import Voice, shorten

SHOWN_TEXT = 240
"""Characters of each text of a sample."""
FIGURES = ("expected", "done", "pending", "merged", "requests")


def compress(intent: CompressBatch, say: Voice, conversation: Conversation) -> Procedure:
    given: dict[str, Any] = named(intent) | ({"max_tokens": intent.max_tokens} if intent.max_tokens else {})
    line = say(
        "Compressing its rows, offline, by extracts; tokens are estimated.",
        "压缩数据（离线摘录，token 数为估计值）。",
    )
    if intent.summarizer:
        given["summarizer"] = intent.summarizer
        line = say(
            f"Compressing its rows, with summaries by {intent.summarizer}; tokens are estimated.",
            f"压缩数据（由 {intent.summarizer} 写摘要，token 数为估计值）。",
        )
    started = yield from must(Call("data_compress", given, line))
    name = started.need("name", str)
    ended = yield from follow(name, say, say("I wait for its end.", "等待其结束。"))
    if isinstance(ended, str):
        return ended
    batch = ended.data
    done = batch.get("compression")
    said = compression_text(done if isinstance(done, dict) else {}, say)
    return said if isinstance(done, dict) and done.get("state") == "finished" else Declined(said)


def export(intent: ExportBatch, say: Voice, conversation: Conversation) -> Procedure:
    if intent.format is None:
        return Declined(which_format(say))
    line = say(f"Exporting its rows as {intent.format}.", f"导出为 {intent.format}。")
    given = {**named(intent), "format": intent.format, "which": intent.which}
    given |= ({"dedupe": "exact"} if intent.dedupe else {}) | ({"pii": True} if intent.pii else {})
    done = yield from must(Call("data_export", given, line))
    written, read, output = (
        show(done.data.get("written")),
        show(done.data.get("read")),
        done.data.get("output"),
    )
    return say(
        f"Exported {written} of {read} rows as {intent.format}: {output}",
        f"已导出 {read} 行中的 {written} 行（{intent.format}）：{output}",
    )


def which_format(say: Voice) -> str:
    return say(
        "As what? For example: export the batch for TRL (or sharegpt, parquet, hf, atif)",
        "导出为哪种格式？例如：把这批导出为 TRL（或 sharegpt、parquet、hf、atif）",
    )


def merge(intent: Batch, say: Voice, conversation: Conversation) -> Procedure:
    merged = yield from must(Call("data_merge", named(intent), say("Merging its rows.", "合并数据行。")))
    data = merged.data
    gone = sum(count for count in merged.section("discarded").values() if isinstance(count, int))
    rows, file = show(data.get("merged")), text(data.get("file"))
    return say(f"{rows} rows, {gone} discarded: {file}", f"{rows} 行，丢弃 {gone} 行：{file}")


def stats(intent: Batch, say: Voice, conversation: Conversation) -> Procedure:
    counted = yield from must(Call("data_stats", named(intent), say("Counting.", "统计中。")))
    lines = [f"{text(counted.data.get('name'))}: {text(counted.data.get('state'))}"]
    lines += [f"  {name}: {show(counted.data[name])}" for name in FIGURES if name in counted.data]
    for name in ("failed", "discarded", "marks"):
        lines += [f"  {name}, {shorten(str(k))}: {show(v)}" for k, v in counted.section(name).items()]
    lines.append(f"  cost_usd: {show(counted.data.get('cost_usd'))}")
    if score := counted.section("score"):
        lines.append("  score: " + ", ".join(f"{k} {show(v)}" for k, v in score.items()))
    for name, calls in counted.section("tool_stats").items():
        known = calls if isinstance(calls, dict) else {}
        lines.append(f"  {shorten(str(name))}: " + ", ".join(f"{k} {show(v)}" for k, v in known.items()))
    return "\n".join(lines)


def show_samples(intent: ShowSamples, say: Voice, conversation: Conversation) -> Procedure:
    given = {**named(intent), "count": intent.count}
    given |= {"first": intent.first} if intent.first > 1 else {}
    given |= {"which": intent.which} if intent.which != "merged" else {}
    shown = yield from must(Call("data_show_samples", given, say("Reading samples.", "读取样本。")))
    lines = []
    for sample in shown.rows("samples"):
        lines.append(f"── {show(sample.get('number'))}")
        entries = sample.get("entries")
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict):
                who = " ".join(filter(None, [text(entry.get("role")), text(entry.get("tool"))]))
                lines.append(f"{who}: {shorten(text(entry.get('text')), SHOWN_TEXT)}")
    return "\n".join(lines) or say("It has no rows.", "没有数据行。")
