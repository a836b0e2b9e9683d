"""Model names -> policies. Names are `provider/name`; keys come from the environment only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rl_cli.core.errors import BadUsage, did_you_mean
from rl_cli.core.handwritten import short
from rl_cli.core.redaction import remember
from rl_cli.core.settings_schema import check_address

if TYPE_CHECKING:
    from environments.policies.base import Policy
    from environments.policies.endpoints.endpoint import Endpoint
    from rl_cli.core.settings import Settings

OPERATOR = "builtin/operator"
DEFAULT_WINDOW = 32_768
"""Tokens, where nobody says how large a model's context window is."""


@dataclass(frozen=True)
class Provider:
    """What is known of an endpoint before any setting."""

    api: str
    key_env: str | None
    base_url: str | None = None
    """None: the SDK's own."""
    base_url_env: str | None = None
    default_model: str | None = None
    """Of the middle of the price list; answers where a key and no model is set."""
    reasoning_field: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


PROVIDERS = {
    "anthropic": Provider(
        "anthropic", "ANTHROPIC_API_KEY", base_url_env="ANTHROPIC_BASE_URL", default_model="claude-sonnet-5-5"
    ),
    "openai": Provider(
        "openai", "OPENAI_API_KEY", base_url_env="OPENAI_BASE_URL", default_model="gpt-6.1-sol"
    ),
    "openrouter": Provider(
        "openai",
        "OPENROUTER_API_KEY",
        "https://openrouter.ai/api/v1",
        default_model="anthropic/claude-sonnet-5.5",
        reasoning_field="reasoning",
        headers={"X-Title": "rl-cli"},
    ),
    "ollama": Provider("openai", None, "http://localhost:11434/v1", base_url_env="OLLAMA_HOST"),
}
"""In the order in which their keys decide who answers."""
OFFICIAL_HOSTS = ("api.anthropic.com", "api.openai.com", "openrouter.ai")


@dataclass(frozen=True)
class Choice:
    """Which model answers, and one line that says why."""

    name: str
    notice: str


def choose_model(asked: str | None) -> Choice:
    """The model that was asked for, else the default of the first provider with a key, else the operator."""
    if asked:
        return Choice(asked, f"model: {asked}")
    other = "To choose who answers: --model provider/name, or rl-cli config set model provider/name."
    for name, provider in PROVIDERS.items():
        if provider.key_env and provider.default_model and os.environ.get(provider.key_env, "").strip():
            model = f"{name}/{provider.default_model}"
            return Choice(model, f"model: {model}, because {provider.key_env} is set. {other}")
    from environments.policies.operator.policy import NOTICE

    keys = [provider.key_env for provider in PROVIDERS.values() if provider.key_env]
    return Choice(OPERATOR, f"{NOTICE} With {', '.join(keys[:-1])} or {keys[-1]} set, a model does. {other}")


def resolve_policy(name: str, base_url: str | None = None, settings: Settings | None = None) -> Policy:
    """Opens nothing yet: returns the policy that `name` stands for.

    Args:
        name: provider/name.
        base_url: Where the endpoint is, instead of where the settings say.
        settings: Those that hold; default: loaded where they are needed.

    Raises:
        BadUsage: No such provider, model or file; no key.
    """
    provider, _, rest = name.partition("/")
    if base_url and provider in ("builtin", "scripted"):
        raise BadUsage(f"{name} has no address", "leave out --base-url, or name a model of the endpoint")
    if name == OPERATOR:
        from environments.policies.operator.policy import OperatorPolicy

        return OperatorPolicy()
    if provider == "scripted" and rest:
        from environments.policies.scripted import ScriptedPolicy

        return ScriptedPolicy(Path(rest))
    endpoint, api = _endpoint(name, base_url, settings)
    if api == "anthropic":
        from environments.policies.anthropic.messages import AnthropicPolicy

        return AnthropicPolicy(endpoint)
    from environments.policies.openai.chat import OpenAIChatPolicy

    return OpenAIChatPolicy(endpoint)


def check_name(name: str, settings: Settings) -> None:
    """Whether some policy is called so; its key, file or server may still be missing.

    Raises:
        BadUsage: No such provider, or no name of a model.
    """
    provider, _, model = name.partition("/")
    known = provider in (*PROVIDERS, *settings.endpoints, "scripted") and bool(model)
    if name != OPERATOR and not known:
        raise _unknown(name, settings)


def endpoint_of(name: str, base_url: str | None = None, settings: Settings | None = None) -> Endpoint:
    """What is known of the endpoint behind `name`; as resolve_policy(), for chat endpoints only."""
    return _endpoint(name, base_url, settings)[0]


def window_of(name: str, endpoint: Endpoint | None = None) -> int:
    """The context window of a model in tokens: as configured, else as listed, else DEFAULT_WINDOW.

    The list is not asked about a server at an address of its own, which may serve the model with less.
    """
    provider, _, model = name.partition("/")
    if endpoint and endpoint.window:
        return endpoint.window
    known = PROVIDERS.get(provider)
    if known is None or not known.key_env or (endpoint and not _is_official(endpoint.base_url)):
        return DEFAULT_WINDOW
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, info = get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return DEFAULT_WINDOW
    return info.context_window or DEFAULT_WINDOW


def is_provider(provider: str) -> bool:
    """Whether `provider/name` is a policy of this module, rather than a model to load."""
    if provider in ("builtin", "scripted", *PROVIDERS):
        return True
    from rl_cli.core.settings import load_settings

    return provider in load_settings().endpoints


def keys_set(settings: Settings) -> list[str]:
    """Names of the variables that hold a provider's or an endpoint's key now."""
    named = [provider.key_env for provider in PROVIDERS.values()]
    named += [entry.get("key_env") for entry in settings.endpoints.values()]
    return [key for key in dict.fromkeys(named) if key and os.environ.get(key, "").strip()]


def _endpoint(name: str, base_url: str | None, settings: Settings | None) -> tuple[Endpoint, str]:
    """The endpoint, and which API it speaks."""
    from environments.policies.endpoints.endpoint import Endpoint

    if settings is None:
        from rl_cli.core.settings import load_settings

        settings = load_settings()
    provider, _, model = name.partition("/")
    known, configured = PROVIDERS.get(provider), settings.endpoints.get(provider)
    if not model or (known is None and configured is None):
        raise _unknown(name, settings)
    configured = configured or {}
    known = known or Provider(configured.get("api", "openai"), None)
    if base_url:
        address: str | None = check_address("--base-url", base_url, "flag")
    else:
        address = configured.get("base_url") or _from_environment(known) or known.base_url
    api = configured.get("api", known.api)
    if address is None and provider not in PROVIDERS:
        hint = f"rl-cli config set endpoints.{provider}.base_url http://..."
        raise BadUsage(f"the endpoint {provider} has no base_url", hint)
    own = {k: v for k, v in configured.items() if k not in ("api", "base_url", "key_env", "headers")}
    if provider == "ollama" and os.environ.get("OLLAMA_CONTEXT_LENGTH", "").isdecimal():
        own.setdefault("window", int(os.environ["OLLAMA_CONTEXT_LENGTH"]))
    own.setdefault("reasoning_field", known.reasoning_field)
    headers = {**known.headers, **configured.get("headers", {})}
    key_env = configured.get("key_env", known.key_env)
    endpoint = Endpoint(provider, model, address, key_env=key_env, headers=headers, **own)
    return _with_key(endpoint), api


def _is_official(base_url: str | None) -> bool:
    from urllib.parse import urlsplit

    return base_url is None or urlsplit(base_url).hostname in OFFICIAL_HOSTS


def _with_key(endpoint: Endpoint) -> Endpoint:
    from dataclasses import replace

    key = os.environ.get(endpoint.key_env, "").strip() if endpoint.key_env else ""
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise BadUsage(f"{endpoint.key_env} holds characters that no key has", "set it anew")
    if endpoint.key_env and not key and not endpoint.is_loopback:
        raise BadUsage(
            f"{endpoint.name} needs a key: {endpoint.key_env} is not set",
            f"export {endpoint.key_env}=..., or choose another model",
        )
    remember(key)  # whatever its variable is called
    return replace(endpoint, api_key=key or None)


def _from_environment(provider: Provider) -> str | None:
    variable = provider.base_url_env
    text = os.environ.get(variable, "").strip() if variable else ""
    if not variable or not text:
        return None
    if variable != "OLLAMA_HOST":
        return check_address(variable, text, "environment variable")
    from urllib.parse import urlsplit

    text = f"localhost{text}" if text.startswith(":") else text
    parts = urlsplit(
        check_address(variable, text if "://" in text else f"http://{text}", "environment variable")
    )
    host = "127.0.0.1" if parts.hostname in ("0.0.0.0", "::") else str(parts.hostname)
    host = f"[{host}]" if ":" in host else host
    port = parts.port or (443 if parts.scheme == "https" else 11434)
    return f"{parts.scheme}://{host}:{port}{parts.path or '/v1'}"


def _unknown(name: str, settings: Settings) -> BadUsage:
    if name.startswith("run:"):
        return BadUsage(
            f"'{short(name)}' cannot answer yet: a run's checkpoint has to be served first",
            "transformers serve CHECKPOINT, then --model openai/CHECKPOINT --base-url http://localhost:8000/v1",
        )
    names = [OPERATOR, "scripted/FILE", *(f"{p}/NAME" for p in [*PROVIDERS, *settings.endpoints])]
    return BadUsage(
        f"unknown model '{short(name)}'",
        f"{did_you_mean(name, list(dict.fromkeys(names)))}; names are provider/name",
    )
