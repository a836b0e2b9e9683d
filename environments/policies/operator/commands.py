"""The rl-cli command for what the operator does not do itself."""

from __future__ import annotations

import re

UPLOADS = re.compile(r"\b(?:sync|synchroni[sz]e|upload|push)\b|同步|上传", re.IGNORECASE)
COMMANDS = [
    (UPLOADS, "rl-cli runs sync [RUN]"),
    (
        re.compile(
            r"\b(?:clean|delete|remove|erase|prune|purge|wipe|tidy|free|clear)\b.{0,40}"
            r"\b(?:runs?|trainings?|checkpoints?|disk|space)\b"
            r"|(?:清理|删除|删掉|删了|清除|清空).{0,12}(?:运行|训练|检查点|空间)"
            r"|(?:运行|训练|检查点).{0,6}(?:清理|删除|删掉|删了|清除|清空)",
            re.IGNORECASE,
        ),
        "rl-cli runs clean",
    ),
    (
        re.compile(r"\b(?:judge|assess|check on|look after)\b|判断|评判|看管|把关", re.IGNORECASE),
        "rl-cli monitor --once",
    ),
    (re.compile(r"\blogs?\b|日志", re.IGNORECASE), "rl-cli runs logs [RUN]"),
    (re.compile(r"\bdoctor\b|\bdiagnos", re.IGNORECASE), "rl-cli doctor"),
]


def command_for(request: str) -> str | None:
    """The command that does what is asked for; None where none is known."""
    return next((command for pattern, command in COMMANDS if pattern.search(request)), None)
