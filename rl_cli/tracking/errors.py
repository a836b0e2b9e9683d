"""Why W&B gave no answer, told apart: down, slow, rate-limited, wrong key, not found, ..."""

from __future__ import annotations

from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.errors import RlCliError

USAGE = ("no_key", "wrong_key", "forbidden", "not_found", "bad_path", "not_installed")
"""Kinds that the person has to mend; the others may pass by themselves."""

HINTS = {
    "no_key": "set WANDB_API_KEY, or run `wandb login`",
    "wrong_key": "check WANDB_API_KEY (it goes before the key in ~/.netrc) and WANDB_BASE_URL",
    "forbidden": "ask the owner of the entity for access, or use another key",
    "down": "check the network and WANDB_BASE_URL; local runs and their files do not depend on it",
    "slow": "try again later; local runs and their files do not depend on it",
    "bad_answer": "is WANDB_BASE_URL a W&B server? try again later",
    "not_installed": "pip install 'wandb>=0.31,<0.32'",
}


class WandbError(RlCliError):
    """W&B gave no answer, or not the one that was wanted.

    Args:
        kind: no_key, wrong_key (401), forbidden (403), not_found, bad_path, rate_limited (429), down
            (cannot be reached, or answers 5xx), slow (no answer by the deadline), bad_answer (cannot be
            read), refused (W&B said no to the query), unsure (it may have done it), ended (the process
            that asked has ended),
            not_installed.
        message: One line that says what is known.
        hint: What to do; default: what helps with such a kind.
        retry_after: Seconds that W&B wants to be left alone, if it said so.
    """

    def __init__(
        self, kind: str, message: str, hint: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(one_line(message, 400), hint or HINTS.get(kind))
        self.kind = kind
        self.retry_after = retry_after
        self.exit_code = 2 if kind in USAGE else 1

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> WandbError:
        return cls(value["kind"], value["message"], value.get("hint"), value.get("retry_after"))


def too_slow(operation: str, deadline: float) -> WandbError:
    return WandbError("slow", f"W&B did not answer within {deadline:g} s ({operation})")
