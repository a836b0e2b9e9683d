"""Rows in the from/value form (ShareGPT): see docs/trajectories.md."""

from __future__ import annotations

from typing import Any

from rl_cli.data.trajectory import to_conversations


def to_sharegpt(row: dict[str, Any]) -> dict[str, Any]:
    """{"key", "conversations": [{"from", "value"}], "system_messages": [{"at", "content"}]}.

    Raises:
        Unconvertible: It says why.
    """
    made = to_conversations(row["messages"], row["tools"])
    return {
        "key": row.get("key"),
        "conversations": made.conversations,
        "system_messages": made.system_messages,
    }
