"""Asks a model what is to be done about a run: one compact request, in a session of its own."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from typing import Any, get_args

from environments.policies.base import Bounds, Policy, PolicyError, Sampling, Usage
from environments.policies.endpoints.token_estimate import ASCII_PER_TOKEN, text_tokens
from environments.tool_calls import first_of
from rl_cli.core.cuts import head, one_line
from rl_cli.core.json_text import repair_surrogates
from rl_cli.core.messages import Message, system, user
from tools.spec import Choice, Decision, NoDecision

JUDGE_SECONDS = 180.0
"""A model that takes longer is not waited for."""
REQUEST_TOKENS = 80
"""Of the person's request, at most."""
LONGEST_REASON, LONGEST_MESSAGE = 400, 2_000
"""Characters."""
CHOICES: tuple[Choice, ...] = get_args(Choice)
DECIDE: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "decide",
        "description": "Say what is to be done about the run.",
        "parameters": {
            "type": "object",
            "properties": {
                "decision": {"type": "string", "enum": list(CHOICES)},
                "reason": {"type": "string"},
                "message": {"type": "string"},
            },
            "required": ["decision", "reason"],
            "additionalProperties": False,
        },
    },
}

_FENCED = re.compile(r"\A```[a-z]*\s*\n(.*)\n\s*```\Z", re.DOTALL)
"""A block of code, as models wrap JSON in."""

log = logging.getLogger(__name__)


class ModelJudge:
    """A policy that judges runs.

    Args:
        policy: Who is asked.
        bounds: Who pays, and until when; asked before each request.
        session_id: Of the conversation, or of what else the requests belong to.
        request: What the person asked for; "" where nobody waits for an answer.
    """

    def __init__(
        self, policy: Policy, bounds: Callable[[], Bounds], session_id: str, request: str = ""
    ) -> None:
        self._policy, self._bounds = policy, bounds
        self._rollout_id = f"{session_id}-judge"
        self._request = request
        self.usage = Usage()
        """Of all its requests."""

    async def __call__(self, digest: str) -> Decision:
        """Judges a run.

        Args:
            digest: See `rl_cli.runs.checks.digest`.

        Raises:
            NoDecision: The model cannot be reached or paid, takes too long, or answers something else.
        """
        request, sampling = judge_request(digest, self._request), Sampling(temperature=None)
        try:
            async with self._policy.open(
                self._rollout_id, [DECIDE], sampling, bounds=self._bounds()
            ) as session:
                done = await first_of(session.complete(request), None, JUDGE_SECONDS)
            completion = done.result() if done else None
        except PolicyError as error:
            raise NoDecision(one_line(str(error), LONGEST_REASON)) from error
        if completion is None:
            raise NoDecision(f"{self._policy.name} did not answer within {JUDGE_SECONDS:.0f} s")
        self.usage += completion.usage
        decision = read_decision(completion.message, self._policy.name)
        if decision is None:
            log.debug("no decision: %.500s", completion.message)
            raise NoDecision(
                f"{self._policy.name} {_did_instead(completion.message)}", read_prose(completion.message)
            )
        return decision


def judge_request(digest: str, request: str = "") -> list[Message]:
    """What the model is sent."""
    from prompts.loader import render

    asked = one_line(repair_surrogates(request), int(REQUEST_TOKENS * ASCII_PER_TOKEN))
    if text_tokens(asked) > REQUEST_TOKENS:
        asked = one_line(asked, REQUEST_TOKENS)
    who = f"The person's request: {json.dumps(asked, ensure_ascii=False)}" if asked else "Nobody waits."
    return [system(render("judge")), user(f"{digest}\n\n{who}")]


def read_decision(message: Message, by: str) -> Decision | None:
    """The decision in a model's answer: its one call, of `decide`, else text that is nothing but its JSON.

    Prose is never searched for one: what a model quotes or refuses is not what it decides.
    """
    calls = message.get("tool_calls") or []
    if calls:
        text = calls[0]["function"]["arguments"] if len(calls) == 1 and _is_decide(calls[0]) else ""
    else:
        text = _FENCED.sub(r"\1", (message["content"] or "").strip())
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _decision(value, by) if isinstance(value, dict) else None


def read_prose(message: Message) -> str:
    """What an answer without a decision says to a person; empty for calls, JSON, code and markup."""
    text = (message["content"] or "").strip()
    is_prose = not message.get("tool_calls") and text[:1] not in ("{", "[", "<", "`")
    return head(text, LONGEST_MESSAGE) if is_prose else ""


def _did_instead(message: Message) -> str:
    """What a model did in place of deciding."""
    called = [call["function"]["name"] for call in message.get("tool_calls") or [] if not _is_decide(call)]
    if called:
        return f"called {one_line(', '.join(called), 60)} where it was asked for a decision only"
    return "did not answer with a decision"


def _is_decide(call: Any) -> bool:
    return bool(call["function"]["name"] == DECIDE["function"]["name"])


def _decision(value: dict[str, Any], by: str) -> Decision | None:
    what, reason, message = (value.get(key) for key in ("decision", "reason", "message"))
    chosen = next((c for c in CHOICES if isinstance(what, str) and c == what.strip().casefold()), None)
    if chosen is None:
        return None
    why = one_line(reason, LONGEST_REASON) if isinstance(reason, str) else ""
    if not why:
        return None
    said = head(message.strip(), LONGEST_MESSAGE) if isinstance(message, str) else ""
    return Decision(chosen, why, said, by)
