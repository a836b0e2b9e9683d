from __future__ import annotations

import pytest

from environments.policies.base import Usage
from rl_cli.spending.prices import is_loopback, price_list
from rl_cli.spending.units import money

MILLION = Usage(1_000_000, 1_000_000)


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        ("builtin/operator", None),
        ("scripted/replies.yaml", None),
        ("run:20261129-152711-gsm8k", None),
        ("ollama/qwen3", None),
        ("ollama/qwen3", "http://localhost:11434/v1"),
        ("openai/gpt-5", "http://127.0.0.1:8000/v1"),
        ("mine/model", "http://[::1]:8000/v1"),
        ("mine/model", "http://0.0.0.0:8000"),
        ("mine/model", "https://box.localhost/v1"),
    ],
)
def test_what_this_computer_answers_costs_nothing(model: str, base_url: str | None) -> None:
    assert price_list({}, base_url)(model, MILLION) == 0.0


@pytest.mark.parametrize(
    "address",
    [
        "http://10.0.0.1/v1",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com",
        "http://[::",
        "",
        "x",
    ],
)
def test_other_addresses_are_not_this_computer(address: str) -> None:
    assert not is_loopback(address)


def test_known_models_have_the_providers_price_and_caches_cost_less_or_more() -> None:
    price_of = price_list({})
    plain = price_of("anthropic/claude-sonnet-4-5", Usage(100_000, 1000))
    assert plain == pytest.approx(0.315)  # $3 and $15 per million
    read = price_of("anthropic/claude-sonnet-4-5", Usage(100_000, 1000, cached_tokens=100_000))
    written = price_of("anthropic/claude-sonnet-4-5", Usage(100_000, 1000, cache_write_tokens=100_000))
    assert plain is not None
    assert read is not None
    assert written is not None
    assert read < plain < written
    assert price_of("openai/gpt-5", Usage(1000, 100)) == pytest.approx(0.00225)
    assert price_of("openrouter/anthropic/claude-sonnet-4.5", Usage(1000, 0)) == pytest.approx(0.003)
    assert price_of("anthropic/claude-sonnet-4-5", Usage(5, 0, cached_tokens=100)) is not None


def test_the_address_decides_and_not_the_name() -> None:
    known = price_list({}, "https://api.openai.com/v1")
    assert known("mine/gpt-5", Usage(1000, 100)) == pytest.approx(0.00225)
    assert price_list({}, "https://llm.example.com/v1")("openai/gpt-5", MILLION) is None


def test_what_nobody_knows_has_no_price() -> None:
    assert price_list({})("openai/no-such-model", MILLION) is None
    assert price_list({})("nobody/model", MILLION) is None


def test_a_persons_own_prices_go_before_everything() -> None:
    own = {"openai/gpt-5": {"input": 1.0, "output": 2.0}, "ollama/qwen3": {"input": 0.5, "output": 0.0}}
    assert price_list(own)("openai/gpt-5", MILLION) == 3.0
    assert price_list(own, "http://localhost:11434/v1")("ollama/qwen3", MILLION) == 0.5


@pytest.mark.parametrize(
    ("dollars", "text"),
    [(0, "$0.00"), (0.000123, "$0.00012"), (0.0099, "$0.0099"), (1234.5, "$1,234.50"), (0.42, "$0.42")],
)
def test_money_shows_digits_that_count(dollars: float, text: str) -> None:
    assert money(dollars) == text
