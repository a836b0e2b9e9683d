"""Model names -> policies. Names are `provider/name`; keys come from the environment only."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rl_cli.core.errors import BadUsage, did_you_mean

if TYPE_CHECKING:
    from environments.policies.base import Policy

OPERATOR = "builtin/operator"
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY")


@dataclass(frozen=True)
class Choice:
    """Which model answers, and one line that says why."""

    name: str
    notice: str


def choose_model(asked: str | None) -> Choice:
    """The model that was asked for, else the built-in operator."""
    if asked:
        return Choice(asked, f"model: {asked}")
    from environments.policies.operator.policy import NOTICE

    unused = [key for key in KEYS if os.environ.get(key)]
    aside = f" {unused[0]} is set, but this version talks to no chat endpoint." if unused else ""
    return Choice(OPERATOR, f"{NOTICE}{aside} To choose who answers: --model {OPERATOR} or scripted/FILE.")


def resolve_policy(name: str) -> Policy:
    """Opens nothing yet: returns the policy that `name` stands for.

    Raises:
        BadUsage: No such provider, model or file.
    """
    provider, _, rest = name.partition("/")
    if name == OPERATOR:
        from environments.policies.operator.policy import OperatorPolicy

        return OperatorPolicy()
    if provider == "scripted" and rest:
        from environments.policies.scripted import ScriptedPolicy

        return ScriptedPolicy(Path(rest))
    hint = did_you_mean(name, [OPERATOR, "scripted/FILE"])
    raise BadUsage(f"unknown model '{name}'", f"{hint}; names are provider/name")
