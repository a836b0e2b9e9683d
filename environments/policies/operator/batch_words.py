"""How a batch of training data is told of."""

from __future__ import annotations

from typing import Any

from environments.policies.operator.answers import STATES, show
from environments.policies.operator.steps import text
from environments.policies.operator.wording import Voice, shorten

STATES_ZH = {**STATES, "merging": "正在合并", "not begun": "未开始"}


def state_text(state: str, say: Voice) -> str:
    """A batch's state, in the language of the request."""
    return say(state, STATES_ZH.get(state, state)) or "?"


def batch_text(batch: dict[str, Any], say: Voice) -> str:
    """How a batch is, in a few lines."""
    state, name = text(batch.get("state")) or "?", text(batch.get("name")) or "?"
    lines = [say(f"Batch {name}: {state}", f"批次 {name}：{state_text(state, say)}")]
    if reason := shorten(text(batch.get("reason")), 300):
        lines[0] += say(f". Reason: {reason}", f"。原因：{reason}")
    done, most, failed = show(batch.get("done")), batch.get("expected"), show(batch.get("failed"))
    if "done" in batch:
        of = "" if most is None else say(f" of {show(most)}", f"/{show(most)}")
        if of and state != "finished":  # rows that cannot be used, or a target, may make it less
            of = say(f" of at most {show(most)}", f"/最多 {show(most)}")
        lines.append(
            say(
                f"Samples: {done}{of} done, {failed} failed, {show(batch.get('in_flight'))} in flight; "
                f"${show(batch.get('cost_usd'))} spent",
                f"样本：完成 {done}{of}，失败 {failed}，进行中 {show(batch.get('in_flight'))}；"
                f"花费 ${show(batch.get('cost_usd'))}",
            )
        )
    if (trouble := shorten(text(batch.get("trouble")), 300)) and trouble not in lines[0]:
        lines.append(say(f"Latest error: {trouble}", f"最近的错误：{trouble}"))
    if "merged" in batch:
        lines.append(_rows(batch, say))
    if isinstance(compression := batch.get("compression"), dict):
        lines.append(compression_text(compression, say))
    lines.append(say(f"Folder: {text(batch.get('dir'))}", f"文件夹：{text(batch.get('dir'))}"))
    if state in ("stopped", "failed"):
        lines.append(say(f"To go on: rl-cli data resume {name}", f"要继续：rl-cli data resume {name}"))
    return "\n".join(lines)


def _rows(batch: dict[str, Any], say: Voice) -> str:
    kept, discarded = show(batch["merged"]), batch.get("discarded")
    if not isinstance(discarded, dict) or not discarded:
        return say(f"Rows: {kept}", f"数据行：{kept}")
    gone = ", ".join(f"{show(count)} {shorten(str(why))}" for why, count in discarded.items())
    return say(f"Rows: {kept} kept; discarded: {gone}", f"数据行：保留 {kept}；丢弃：{gone}")


def compression_text(done: dict[str, Any], say: Voice) -> str:
    state = text(done.get("state")) or "?"
    rows, squeezed, output = show(done.get("rows")), show(done.get("compressed")), text(done.get("output"))
    reason = shorten(text(done.get("reason")), 300)
    return say(
        f"Compression: {state}, {rows} rows, {squeezed} of them compressed: {output}",
        f"压缩：{state_text(state, say)}，{rows} 行，其中 {squeezed} 行被压缩：{output}",
    ) + (f" ({reason})" if reason else "")
