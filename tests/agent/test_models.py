from __future__ import annotations

import typing

import pytest

from rl_cli.agent.models import (
    DEFAULT_WINDOW,
    PROVIDERS,
    choose_model,
    endpoint_of,
    resolve_policy,
    window_of,
)
from rl_cli.core.errors import BadUsage
from rl_cli.core.settings import Settings

KEY = "sk-planted-0123456789"
VLLM = Settings(
    endpoints={
        "vllm": {"base_url": "http://gpu:8000/v1", "window": 8192, "reasoning_field": "reasoning_content"},
        "proxy": {
            "api": "anthropic",
            "base_url": "https://proxy/a",
            "key_env": "PROXY_KEY",
            "thinking": 2000,
        },
        "openai": {"key_env": "WORK_KEY", "headers": {"X-Team": "rl"}},
        "bare": {"window": 100},
    }
)


@pytest.fixture(autouse=True)
def no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "OLLAMA_HOST", "OLLAMA_CONTEXT_LENGTH"):
        monkeypatch.delenv(variable, raising=False)


def test_without_a_model_the_first_key_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = choose_model(None)
    assert choice.name == "builtin/operator"
    assert "ANTHROPIC_API_KEY" in choice.notice
    for key, provider in (
        ("OPENROUTER_API_KEY", "openrouter"),
        ("OPENAI_API_KEY", "openai"),
        ("ANTHROPIC_API_KEY", "anthropic"),
    ):
        monkeypatch.setenv(key, KEY)
        choice = choose_model(None)
        assert choice.name.startswith(f"{provider}/")
        assert key in choice.notice
        assert "--model" in choice.notice
        assert KEY not in choice.notice
        assert "\n" not in choice.notice
        assert resolve_policy(choice.name).name == choice.name
    monkeypatch.setenv("ANTHROPIC_API_KEY", " ")
    assert choose_model(None).name.startswith("openai/")
    assert choose_model("scripted/x.yaml").name == "scripted/x.yaml"


def test_default_models_are_ones_that_the_sdks_and_the_price_list_know() -> None:
    from anthropic.types import model as claude
    from genai_prices.data_snapshot import get_snapshot
    from openai.types.shared import chat_model

    named = {a for union in typing.get_args(claude.Model) for a in typing.get_args(union)}
    assert PROVIDERS["anthropic"].default_model in named
    assert PROVIDERS["openai"].default_model in typing.get_args(chat_model.ChatModel)
    for name, provider in PROVIDERS.items():
        if provider.default_model:
            get_snapshot().find_provider_model(provider.default_model, None, name, None)


def test_a_provider_needs_its_key_and_never_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadUsage, match="OPENAI_API_KEY is not set"):
        resolve_policy("openai/gpt-6.1-sol", settings=Settings())
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    endpoint = endpoint_of("openai/gpt-6.1-sol", settings=Settings())
    assert (endpoint.api_key, endpoint.base_url) == (KEY, None)
    assert KEY not in repr(endpoint)
    policy = resolve_policy("openai/gpt-6.1-sol", settings=Settings())
    assert policy.name == "openai/gpt-6.1-sol"
    assert KEY not in repr(policy)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted\x1b 0123")
    with pytest.raises(BadUsage, match="OPENAI_API_KEY holds characters") as caught:
        endpoint_of("openai/gpt-6.1-sol", settings=Settings())
    assert "planted" not in str(caught.value)


def test_addresses_come_from_the_flag_then_the_settings_then_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://env/v1/")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    name = "openai/x"
    assert endpoint_of(name, settings=Settings()).base_url == "http://env/v1"
    here = Settings(endpoints={"openai": {"base_url": "http://settings/v1"}})
    assert endpoint_of(name, settings=here).base_url == "http://settings/v1"
    assert endpoint_of(name, "http://flag/v1", here).base_url == "http://flag/v1"
    for wrong in ("flag/v1", "http://me:pass@flag/v1", "http://[::1"):
        with pytest.raises(BadUsage, match="--base-url"):
            endpoint_of(name, wrong, here)
    with pytest.raises(BadUsage, match="has no address"):
        resolve_policy("builtin/operator", "http://flag/v1")


def test_this_computer_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("http://localhost:8000/v1", "http://127.0.0.1:1/v1", "http://[::1]:1/v1"):
        assert endpoint_of("openai/any", address, Settings()).api_key is None
    with pytest.raises(BadUsage, match="OPENAI_API_KEY is not set"):
        endpoint_of("openai/any", "http://127.0.0.1.example.org/v1", Settings())
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert endpoint_of("openai/any", "http://localhost:8000/v1", Settings()).api_key == KEY


def test_endpoints_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    vllm = endpoint_of("vllm/org/model:7b", settings=VLLM)
    assert (vllm.name, vllm.model, vllm.api_key) == ("vllm/org/model:7b", "org/model:7b", None)
    assert (vllm.window, vllm.reasoning_field) == (8192, "reasoning_content")
    assert type(resolve_policy("vllm/x", settings=VLLM)).__name__ == "OpenAIChatPolicy"
    with pytest.raises(BadUsage, match="PROXY_KEY is not set"):
        endpoint_of("proxy/x", settings=VLLM)
    monkeypatch.setenv("PROXY_KEY", KEY)
    monkeypatch.setenv("WORK_KEY", KEY)
    assert endpoint_of("proxy/x", settings=VLLM).thinking == 2000
    assert type(resolve_policy("proxy/x", settings=VLLM)).__name__ == "AnthropicPolicy"
    own = endpoint_of("openai/x", settings=VLLM)
    assert (own.key_env, own.headers["X-Team"]) == ("WORK_KEY", "rl")
    with pytest.raises(BadUsage, match="bare has no base_url"):
        endpoint_of("bare/x", settings=VLLM)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        (":8080", "http://localhost:8080/v1"),
        ("box:1", "http://box:1/v1"),
        ("https://box/ollama/v1", "https://box:443/ollama/v1"),
        ("http://[::]:5", "http://127.0.0.1:5/v1"),
        ("", "http://localhost:11434/v1"),
    ],
)
def test_ollama_is_where_its_variable_says(host: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    monkeypatch.setenv("OLLAMA_CONTEXT_LENGTH", "8000")
    endpoint = endpoint_of("ollama/llama3.2:3b", settings=Settings())
    assert (endpoint.base_url, endpoint.api_key, endpoint.window) == (address, None, 8000)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-5", "names are provider/name"),
        ("opnai/gpt-5", "did you mean openai/NAME"),
        ("openai/", "unknown model"),
        ("builtin/opertor", "did you mean builtin/operator"),
        ("vllm/x", "unknown model"),
        ("run:20260101-x", "transformers serve"),
        ("x" * 5000, "unknown model"),
        ("scripted/", "unknown model"),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused_in_one_line(name: str, words: str) -> None:
    with pytest.raises(BadUsage) as caught:
        resolve_policy(name, settings=Settings())
    assert words in str(caught.value)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


def test_the_window_is_as_configured_else_as_listed_else_a_careful_guess(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    name = "openai/gpt-4o"
    listed = endpoint_of(name, settings=Settings())
    assert window_of(name, listed) == 128_000
    assert window_of(name, endpoint_of(name, "https://api.openai.com/v1", Settings())) == 128_000
    assert window_of(name, endpoint_of(name, "http://localhost:1/v1", Settings())) == DEFAULT_WINDOW
    assert window_of("openai/no-such-model", listed) == DEFAULT_WINDOW
    assert window_of("vllm/x", endpoint_of("vllm/x", settings=VLLM)) == 8192
    assert window_of("builtin/operator") == DEFAULT_WINDOW
