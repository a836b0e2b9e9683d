"""A call that failed, was refused, or was answered with a no, in words."""

from __future__ import annotations

import re

from environments.policies.operator.fixed_sentences import translated
from environments.policies.operator.steps import Result
from environments.policies.operator.wording import Voice


def failure_text(result: Result, say: Voice) -> str:
    """A failed call, plainly: what failed, why, and what helps."""
    message, hint = result.message or result.kind or "?", result.hint
    if result.kind == "refused":
        reason = translated(message.removeprefix(f"the call of {result.tool} was refused: "), say)
        return say(f"Refused: {result.tool}: {reason}.", f"{result.tool} 被拒绝：{reason}。") + _to_allow(
            message, say
        )
    told, help_ = translated(message, say), translated(hint, say)
    line = say(f"{result.tool} failed: {told}", f"{result.tool} 失败：{told}")
    return line + say(f" ({help_})", f"（{help_}）") if hint and hint not in message else line


def said_no(result: Result) -> str | None:
    """What the person said when asked about a call, beside no; None where nobody said no."""
    found = re.search(r"refused: the person said no(?:: (.*))?$", result.message, re.DOTALL)
    return (found[1] or "") if found and result.kind == "refused" else None


def _to_allow(message: str, say: Voice) -> str:
    """How a call that nobody was asked about can be allowed; "" where a person or a budget said no."""
    if "forbidden by the rule" in message:
        return say(" To allow it, change that rule.", "如需允许，请修改该规则。")
    if "no --yes" in message:
        return say(
            " To allow it, ask from a terminal, or pass --yes.", "如需允许，请在终端里运行，或加上 --yes。"
        )
    return ""
