"""How often a request is made, how long in between, and what each attempt is billed."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.policies.base import (
    Bounds,
    BudgetExhausted,
    ContextOverflow,
    DeadlineReached,
    PolicyError,
    Retrying,
    Usage,
)
from environments.policies.endpoints.attempts import (
    Failure,
    Progress,
    Request,
    WaitPolicy,
    as_time,
    with_retries,
)
from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.endpoints.errors import CutStream, Refusal, StreamedError, classify, cleaned
from environments.policies.endpoints.server_said import asked_wait, read_said
from tests.environments.meters import LoggingMeter
from tests.wire import refusals

ENDPOINT = Endpoint("openai", "gpt-x", None, "sk-key")
QUICK = WaitPolicy(attempts=4, base=0.001, cap=0.002)
TRANSIENT = Failure(PolicyError("it failed"), retry=True)
LOST = Failure(PolicyError("it was lost"), retry=True, billed=True)


class Fails(Exception):
    def __init__(self, failure: Failure | None) -> None:
        self.failure = failure


async def attempt(outcomes: list[Any], bounds: Bounds | None = None, wait: WaitPolicy = QUICK) -> Any:
    """Plays failures and, at last, a Usage; returns the usage, what was told, and the number of attempts."""
    told: list[Retrying] = []
    left = list(outcomes)

    async def send(progress: Progress) -> tuple[str, Usage]:
        outcome = left.pop(0)
        if isinstance(outcome, Usage):
            return "answer", outcome
        progress.output_tokens = 7
        raise outcome if isinstance(outcome, BaseException) else Fails(outcome)

    def what(error: Exception) -> Failure | None:
        return error.failure if isinstance(error, Fails) else None

    request = Request("openai/gpt-x", 100, 50)
    answer, usage = await with_retries(send, what, request, bounds or Bounds(), wait, told.append)
    assert answer == "answer"
    return usage, told, len(outcomes) - len(left)


def test_failures_are_repeated_and_every_attempt_is_paid_once():
    meter = LoggingMeter()
    outcomes = [TRANSIENT, LOST, Usage(input_tokens=90, output_tokens=20, requests=1)]
    usage, told, attempts = asyncio.run(attempt(outcomes, Bounds(meter)))
    assert (usage.requests, usage.dollars, attempts) == (3, 1.5, 3)
    assert (usage.input_tokens, usage.output_tokens) == (90, 20)
    assert meter.kinds == ["reserve", "release", "reserve", "unknown", "reserve", "settle"]
    assert meter.log[0] == ("reserve", "openai/gpt-x", 100, 50)
    assert meter.log[3][1] == Usage(input_tokens=100, output_tokens=7, requests=1)
    assert [t.reason for t in told] == ["it failed", "it was lost"]


def test_attempts_end_and_say_how_many_there_were():
    with pytest.raises(PolicyError, match="it failed; tried 4 times"):
        asyncio.run(attempt([TRANSIENT] * 5))


@pytest.mark.parametrize("kind", [PolicyError, ContextOverflow, Refusal])
def test_a_final_failure_ends_at_once_with_its_kind(kind):
    meter = LoggingMeter()
    with pytest.raises(kind, match="no"):
        asyncio.run(attempt([Failure(kind("no"))], Bounds(meter)))
    assert meter.kinds == ["reserve", "release"]


def test_the_meter_is_asked_again_for_every_attempt():
    meter = LoggingMeter(requests_left=2)
    with pytest.raises(BudgetExhausted):
        asyncio.run(attempt([LOST, LOST, LOST], Bounds(meter)))
    assert meter.kinds == ["reserve", "unknown", "reserve", "unknown"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), asyncio.CancelledError(), ZeroDivisionError()])
def test_agt_30_what_is_no_failure_of_the_endpoint_is_neither_repeated_nor_swallowed(error):
    meter = LoggingMeter()
    with pytest.raises(type(error)):
        asyncio.run(attempt([error, Usage()], Bounds(meter)))
    assert meter.kinds == ["reserve", "unknown"]


def test_a_wait_that_is_asked_for_is_kept_exactly():
    asked = Failure(PolicyError("busy"), retry=True, wait_seconds=0.2)
    started = time.monotonic()
    _, told, _ = asyncio.run(attempt([asked, Usage()]))
    assert time.monotonic() - started >= 0.2
    assert told == [Retrying("busy", 0.2)]


def test_a_wait_that_is_too_long_ends_at_once():
    asked = Failure(PolicyError("busy"), retry=True, wait_seconds=3600)
    with pytest.raises(PolicyError, match="busy; the server asks to wait 1 h"):
        asyncio.run(attempt([asked]))


def test_no_wait_goes_past_the_deadline():
    asked = Failure(PolicyError("busy"), retry=True, wait_seconds=50)
    with pytest.raises(DeadlineReached, match="busy"):
        asyncio.run(attempt([asked], Bounds(deadline=time.monotonic() + 20)))
    with pytest.raises(DeadlineReached):
        asyncio.run(attempt([Usage()], Bounds(deadline=time.monotonic() - 1)))


@given(st.integers(1, 2000))
def test_the_backoff_grows_up_to_its_cap(repetition):
    wait = WaitPolicy()
    assert 0 < wait.backoff(repetition) <= wait.cap
    assert wait.backoff(1) <= wait.base <= 2 * wait.backoff(2)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_what_a_server_asks_for(headers, seconds):
    assert asked_wait(headers) == seconds


def test_dates_and_words_are_waits_too():
    in_ten = asked_wait({"retry-after": formatdate(time.time() + 10, usegmt=True)})
    assert in_ten is not None
    assert 5 < in_ten <= 10
    assert asked_wait({}, "Please try again in 1m2.5s.") == 62.5
    assert asked_wait({}, "Please try again in 20ms.") == 0.02


@pytest.mark.parametrize(("seconds", "text"), [(1.2, "2 s"), (90, "2 min"), (3600, "1 h"), (5400, "1.5 h")])
def test_times_for_a_person(seconds, text):
    assert as_time(seconds) == text


@pytest.mark.parametrize("who", refusals.OVERFLOWS)
def test_an_overflow_is_recognised_in_every_wording(who):
    refusal = refusals.OVERFLOWS[who]
    body = refusal.body or {"message": refusal.message, "code": refusal.code, "type": refusal.type}
    failure = classify(SaidBySdk(refusal.status, body), ENDPOINT)
    assert failure is not None
    assert (type(failure.error), failure.retry) == (ContextOverflow, False)


class SaidBySdk(Exception):
    """Looks like the SDKs' APIStatusError."""

    def __init__(self, status: int, body: Any) -> None:
        self.status_code, self.body = status, body


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_statuses_that_pass(status):
    failure = classify(SaidBySdk(status, {"message": "try later"}), ENDPOINT)
    assert failure is not None
    assert failure.retry


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (refusals.openai_bad_key(), "check OPENAI_API_KEY"),
        (refusals.openai_no_quota(), "no quota or credit left"),
        (refusals.anthropic_no_credit(), "no quota or credit left"),
        (refusals.openai_unknown_model(), "has no model 'gpt-x' for you: choose another with --model"),
    ],
)
def test_refusals_say_what_to_do(refusal, told):
    body = {"message": refusal.message, "code": refusal.code, "type": refusal.type}
    failure = classify(SaidBySdk(refusal.status, body), ENDPOINT)
    assert failure is not None
    assert (failure.retry, failure.billed) == (False, False)
    assert told in str(failure.error)
    assert "\n" not in str(failure.error)


def test_a_model_that_ollama_lacks_can_be_pulled():
    endpoint = Endpoint("ollama", "qwen3", "http://localhost:11434/v1")
    failure = classify(SaidBySdk(404, {"message": "model 'qwen3' not found"}), endpoint)
    assert failure is not None
    assert "ollama pull qwen3" in str(failure.error)


def test_agt_22_what_a_server_says_is_shown_without_accounts_and_keys():
    said = "Limit reached for org-ABCDEF123 (proj_Abc123456), key sk-test-abcdefghijklmnopqrst, " + "x" * 500
    failure = classify(SaidBySdk(429, {"message": said}), ENDPOINT)
    assert failure is not None
    text = str(failure.error)
    assert "Limit reached" in text
    for secret in ("org-ABC", "proj_", "sk-test"):
        assert secret not in text
    assert len(text) < 300
    assert cleaned("a\n\tb \x1b[31mc") == "a b [31mc"


def test_request_bodies_and_pages_are_not_repeated():
    fastapi = [
        {"loc": ["body", "messages", 0], "msg": "Field required", "input": {"content": "my secret plan"}}
    ]
    assert read_said({"detail": fastapi}, 422).message == "messages.0: Field required"
    assert read_said("<html>Bad gateway</html>", 502).message == ""
    assert read_said({"error": "model not found"}, 404).message == "model not found"


def test_errors_inside_a_stream_have_the_status_of_their_type():
    overloaded = classify(StreamedError({"error": {"type": "overloaded_error", "message": "x"}}), ENDPOINT)
    assert overloaded is not None
    assert (overloaded.retry, overloaded.billed) == (True, True)
    refused = classify(StreamedError({"error": {"code": 400, "message": "no"}}), ENDPOINT)
    assert refused is not None
    assert not refused.retry


def test_a_lost_answer_may_have_been_billed():
    failure = classify(CutStream("it ended too early"), ENDPOINT)
    assert failure is not None
    assert (failure.retry, failure.billed) == (True, True)


def test_an_endpoint_does_not_show_its_key():
    endpoint = Endpoint("openai", "x", None, "sk-key", headers={"authorization": "Bearer abc"})
    assert "sk-key" not in repr(endpoint)
    assert "abc" not in repr(endpoint)
