"""What a training would take, told from the runs that there are; where to see what one has cost."""

from __future__ import annotations

from statistics import median
from typing import Any

from environments.policies.operator import names, talking
from environments.policies.operator.answers import duration, is_replay
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.intents import HowLong, Intent
from environments.policies.operator.steps import Call, Procedure, figure, must
from environments.policies.operator.wording import Voice

MOST_RUNS = 500
ENOUGH = 5


def how_long(intent: HowLong, say: Voice, conversation: Conversation) -> Procedure:
    look = Call("rl_list_environments", {}, say("Which environment is meant?", "先看指的是哪个环境。"))
    rows = (yield from must(look)).rows("environments")
    match = names.environment(intent.subject, rows)
    if match.kind not in ("exact", "misspelled"):
        return (yield from talking.how_to_train(intent, say, conversation))
    line = say(f"How long did runs of {match.name} take here?", f"查看 {match.name} 以往的运行用了多久。")
    listing = yield from must(Call("rl_list_runs", {"limit": MOST_RUNS}, line))
    pairs = [_steps_and_seconds(row) for row in listing.rows("runs") if row.get("environment") == match.name]
    known = [pair for pair in pairs if pair][:ENOUGH]
    if not known:
        return say(
            f"I cannot tell: no training of {match.name} has finished here yet. "
            "Before one starts you are shown what it is estimated to take, and asked.",
            f"无法判断：这里还没有完成过 {match.name} 的训练。启动之前会给出预计时间并询问你。",
        )
    wanted = intent.settings.changes.get("grpo.steps")
    steps = wanted if isinstance(wanted, int) and wanted > 0 else known[0][0]
    seconds = median(took * steps / done for done, took in known)
    took, count = duration(seconds, say), len(known)
    return say(
        f"About {took} for {steps} steps of {match.name}, by the {count} newest finished "
        f"run{'s' if count > 1 else ''} here, scaled by their steps. Nothing was started.",
        f"{match.name} 训练 {steps} 步大约需要 {took}：按这里最近完成的 {count} 个运行折算。"
        "没有启动任何训练。",
    )


def costs(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    return say(
        "What was spent, by day, session, run and model: rl-cli costs (in a chat: /cost). "
        "What a training would cost is shown before it starts.",
        "花费按天、会话、运行和模型列出：rl-cli costs（对话中：/cost）。启动训练之前会显示预计费用。",
    )
    yield


def _steps_and_seconds(row: dict[str, Any]) -> tuple[int, float] | None:
    """Of a finished run that trained; None for any other."""
    steps = row.get("total_steps")
    if row.get("state") != "finished" or is_replay(row) or not isinstance(steps, int) or steps < 1:
        return None
    seconds = figure(row.get("seconds"))
    return (steps, seconds) if seconds and seconds > 0 else None
