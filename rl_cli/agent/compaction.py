"""Replaces older messages by a summary, so that a conversation fits its model's window.

What was asked, done and started is listed from the records (digest.py); the rest the model itself puts in
words. Where it cannot, the lists alone remain.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

from environments.policies.base import Bounds, Policy, PolicyError, Sampling, Usage
from environments.policies.endpoints.token_estimate import ASCII_PER_TOKEN, request_tokens
from environments.tool_calls import first_of
from rl_cli.agent.digest import as_texts
from rl_cli.agent.window import SHORTEST_RESULT, with_bounded_results
from rl_cli.core.cuts import ends, head
from rl_cli.core.messages import Message, system, user
from tools.results import SMALLEST

SUMMARY_SECONDS = 180.0
"""A model that takes longer is not waited for."""
LONGEST_WORDS = 8_000
"""Characters of the model's part of a summary."""
SHOWN_RESULT = 1_200
"""Characters of a tool result that the model is shown for summarising."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cut:
    """Where a conversation is divided. Calls and their results are on the same side."""

    older: list[Message]
    kept: list[Message]
    """The request of a turn that was divided is on both sides."""


def cut(messages: list[Message], keep_tokens: int, whole_turns: bool) -> Cut | None:
    """Divides the messages that followed the last summary; None where nothing can be made shorter.

    Args:
        messages: Well formed, without system prompt and summary.
        keep_tokens: About so much of the end is kept, but at least the last message with its results.
        whole_turns: Never divides a turn. Else one that is too long is divided, and its request is kept.
    """
    starts = [i for i, message in enumerate(messages) if message["role"] != "tool"]
    if not starts:
        return None
    at, taken = starts[-1], 0
    for start, end in zip(reversed(starts), reversed([*starts[1:], len(messages)]), strict=True):
        taken += request_tokens(messages[start:end])
        if taken > keep_tokens:
            break
        at = start
    requests = [i for i in starts if messages[i]["role"] == "user"]
    later = [i for i in requests if i >= at]
    if later:
        at = later[0]
    elif whole_turns and requests:
        at = requests[-1]
    older, kept = messages[:at], messages[at:]
    if not later and not whole_turns and requests:  # within a turn
        if at == requests[-1] + 1:
            older = messages[: requests[-1]]
        kept = [messages[requests[-1]], *kept]
    fitted = _fitted(kept, keep_tokens)
    return Cut(older, fitted) if older or fitted is not kept else None


async def put_in_words(
    policy: Policy,
    rollout_id: str,
    older: list[Message],
    summary: str | None,
    room: int | None,
    bounds: Bounds,
    interrupted: asyncio.Event,
) -> tuple[str, Usage]:
    """The model's own account of the older messages; "" where it gives none.

    Args:
        policy: Who writes it; it is offered no tools.
        rollout_id: Of the session that is opened for it.
        older: What is to be summarised.
        summary: What stands for the messages before them.
        room: Tokens that the request may take; None: no limit.
        bounds: Who pays.
        interrupted: Ends the wait.
    """
    from prompts.loader import render

    text = _as_text(older) if summary is None else f"{summary}\n\n{_as_text(older)}"
    if room is not None:
        text = ends(text, max(SHORTEST_RESULT, int(0.6 * room * ASCII_PER_TOKEN)))
    request = [system(render("compaction")), user(text)]
    try:
        async with policy.open(rollout_id, [], Sampling(temperature=None), bounds=bounds) as session:
            done = await first_of(session.complete(request), interrupted, SUMMARY_SECONDS)
            if done is None:
                return "", Usage()
            completion = done.result()
    except PolicyError as error:
        log.debug("no summary from %s: %s", policy.name, error)
        return "", Usage()
    return head((completion.message["content"] or "").strip(), LONGEST_WORDS), completion.usage


def compose(words: str, digest: dict[str, Any], limit: int | None) -> str:
    """The text that takes the place of the older messages.

    Args:
        words: The model's account, or "".
        digest: What the records say.
        limit: Tokens that it may take at most; None: no limit.
    """
    from prompts.loader import render

    share = None
    if limit is not None:
        share = max(SMALLEST, int(limit * ASCII_PER_TOKEN / 4))
        words = ends(words, share)
    texts = as_texts(digest, share)
    return render("summary", words=words or "(the lists below are all that is left)", **texts)


def _fitted(kept: list[Message], tokens: int) -> list[Message]:
    """Where the results of one turn alone take too much, each gets its share."""
    results = sum(message["role"] == "tool" for message in kept)
    if not results or request_tokens(kept) <= 2 * tokens:
        return kept
    return with_bounded_results(kept, max(SMALLEST, int(tokens * ASCII_PER_TOKEN / results)))


def _as_text(messages: list[Message]) -> str:
    lines = []
    for message in messages:
        content = message["content"] or ""
        if message["role"] == "tool":
            lines.append(f"RESULT of {message.get('name', '')}: {ends(content, SHOWN_RESULT)}")
            continue
        if content:
            lines.append(f"{'PERSON' if message['role'] == 'user' else 'ASSISTANT'}: {content}")
        for call in message.get("tool_calls", []):
            lines.append(f"CALL {call['function']['name']}({call['function']['arguments']})")
    return "\n\n".join(lines)
