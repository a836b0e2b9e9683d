"""Shortens a session's conversation: cuts, has the older part summarised, records what takes its place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from environments.policies.base import Bounds, Policy, Usage
from environments.policies.endpoints.token_estimate import request_tokens
from rl_cli.agent import digest
from rl_cli.agent.compaction import compose, cut, put_in_words
from rl_cli.agent.session_file import SessionFile
from rl_cli.agent.window import KEPT, room
from tools.dispatcher import tool_specs

SUMMARY_SHARE = 0.2
"""Of the room: the most that a summary takes."""


@dataclass(frozen=True)
class Shortening:
    """What was done."""

    told: str
    """One line for a person."""
    halved: bool
    """It takes at most half of what it took."""
    usage: Usage


async def shorten_conversation(
    session: SessionFile,
    policy: Policy,
    window: int | None,
    toolsets: tuple[str, ...],
    bounds: Bounds,
    interrupted: asyncio.Event,
    whole_turns: bool,
    tell: Callable[[str], None],
) -> Shortening | None:
    """Replaces older messages by a summary; None where there is nothing to replace.

    Args:
        session: Where it is recorded, in one line: a crash leaves the old conversation or the new one.
        policy: Writes the summary; where `window` is None it is not asked (operator, scripts).
        window: In tokens.
        toolsets: Whose tools' calls are listed as done, unless they only read.
        bounds: Who pays for the summary.
        interrupted: Ends the wait for it.
        whole_turns: See `compaction.cut`; always so where `window` is None.
        tell: Receives a line for the person before the model is asked, and one after.
    """
    history = session.history
    before = request_tokens(history.messages())
    space = before if window is None else min(room(window), before)
    parts = cut(history.since_summary(), int(KEPT * space), whole_turns or window is None)
    if parts is None:
        return None
    words, usage = "", Usage()
    if window is not None and parts.older:
        tell("older messages are being summarised")
        words, usage = await put_in_words(
            policy, f"{session.id}-summary", parts.older, history.summary, room(window), bounds, interrupted
        )
    risks = {name: spec.risk for name, spec in tool_specs(toolsets).items()}
    lists = digest.add(history.digest, parts.older, risks)
    summary = compose(words, lists, None if window is None else int(SUMMARY_SHARE * room(window)))
    session.record("compaction", summary=summary, digest=lists, kept=parts.kept)
    after = request_tokens(history.messages())
    how = "in the model's words and by the records" if words else "by the records"
    told = f"older messages were summarised {how}: about {before:,} tokens are now {after:,}"
    session.record("notice", text=told)
    tell(told)
    return Shortening(told, after <= before / 2, usage)
