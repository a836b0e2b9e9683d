"""Which run is the best: all finished runs that trained, ranked within their environment."""

from __future__ import annotations

from typing import Any

from environments.policies.operator import names
from environments.policies.operator.answers import is_replay
from environments.policies.operator.comparing import run_line, verdict
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.intents import Best
from environments.policies.operator.steps import Call, Procedure, figure, must, text
from environments.policies.operator.wording import Voice

MOST_RUNS = 500
SHOWN = 5
"""Of each environment."""


def best(intent: Best, say: Voice, conversation: Conversation) -> Procedure:
    line = say("Looking at all runs.", "查看全部运行。")
    listing = yield from must(Call("rl_list_runs", {"limit": MOST_RUNS}, line))
    rows = listing.rows("runs")
    known = [{"name": name} for name in dict.fromkeys(text(row.get("environment")) for row in rows)]
    match = names.environment(intent.subject, known)
    wanted = [row for row in rows if match.kind != "exact" or row.get("environment") == match.name]
    counted = [row for row in wanted if row.get("state") == "finished" and not is_replay(row)]
    measured = [row for row in counted if _final(row) is not None]
    lines = [_looked_at(measured, wanted, say)]
    for environment in dict.fromkeys(text(row.get("environment")) for row in measured):
        own = [row for row in measured if text(row.get("environment")) == environment]
        own.sort(key=lambda row: -(_final(row) or 0.0))
        lines += [run_line(row, row["eval"], say) for row in own[:SHOWN]]
        if len(own) > SHOWN:
            lines.append(
                say(
                    f"  ... and {len(own) - SHOWN} more of {environment}",
                    f"  ……{environment} 还有 {len(own) - SHOWN} 个",
                )
            )
        lines.append(
            (yield from verdict([(row, row["eval"]) for row in own], say))
            if len(own) > 1
            else say(f"It is the only one of {environment}.", f"{environment} 只有这一个。")
        )
    return "\n".join(lines)


def _looked_at(measured: list[Any], rows: list[Any], say: Voice) -> str:
    replays = sum(is_replay(row) for row in rows)
    rest = len(rows) - len(measured) - replays
    left = [say(f"{replays} replays", f"{replays} 个回放")] if replays else []
    left += (
        [say(f"{rest} without a final accuracy or not finished", f"{rest} 个没有最终准确率或未完成")]
        if rest
        else []
    )
    count = len(measured)
    line = say(
        f"I looked at {count} finished run{'s' if count != 1 else ''} that trained",
        f"我看了 {count} 个已完成的训练运行",
    )
    if len(rows) >= MOST_RUNS:
        line += say(f" among the newest {MOST_RUNS}", f"（最近 {MOST_RUNS} 个之内）")
    if left:
        line += say(f" (not counted: {', '.join(left)})", f"（不计：{'、'.join(left)}）")
    if not measured:
        return line + say(", so none can be called best.", "，无法判定哪个最好。")
    return line + say(":", "：")


def _final(row: dict[str, Any]) -> float | None:
    known = row.get("eval")
    if not isinstance(known, dict) or not figure(known.get("n")):
        return None
    return figure(known.get("final"))
