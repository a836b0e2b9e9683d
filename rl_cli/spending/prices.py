"""What a request costs: a person's own prices, 0 on this computer, else those of the package genai-prices.

genai-prices is used with the data that it was installed with; it is never told to fetch newer ones. Where the
requests go to decides, not the model's name alone: a base_url that belongs to no known provider has no price.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from environments.policies.base import Usage

FREE_PROVIDERS = frozenset({"builtin", "scripted", "run"})
"""They answer from this computer."""
LOCAL_PROVIDERS = frozenset({"ollama"})
"""On this computer unless a base_url says otherwise."""
PER = 1_000_000
"""Prices are dollars per so many tokens."""

PriceOf = Callable[[str, Usage], float | None]
"""`provider/name` and what was used -> dollars; None: not known."""


def price_list(models: Mapping[str, Mapping[str, float]], base_url: str | None = None) -> PriceOf:
    """What requests to one endpoint cost.

    Args:
        models: A person's own prices: `provider/name` -> {"input", "output"} in dollars per million tokens
            (the setting prices.models). They go before everything else; what a cache saves is not in them.
        base_url: Where the requests are sent; None: where the provider's name says.
    """

    def price_of(model: str, usage: Usage) -> float | None:
        if model in models:
            return _own_price(models[model], usage)
        if is_free(model, base_url):
            return 0.0
        return _known_price(model, usage, base_url)

    return price_of


def is_free(model: str, base_url: str | None = None) -> bool:
    """Whether a request costs nothing because this computer answers it."""
    provider = model.partition("/")[0].partition(":")[0]
    if provider in FREE_PROVIDERS:
        return True
    return is_loopback(base_url) if base_url else provider in LOCAL_PROVIDERS


@lru_cache(64)
def is_loopback(address: str) -> bool:
    """Whether an address is on this computer: localhost, 127.0.0.0/8, ::1, 0.0.0.0."""
    try:
        host = urlsplit(address if "://" in address else f"//{address}").hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        return False
    number = getattr(number, "ipv4_mapped", None) or number
    return number.is_loopback or number.is_unspecified


def _own_price(prices: Mapping[str, float], usage: Usage) -> float:
    dollars = usage.input_tokens * prices["input"] + usage.output_tokens * prices["output"]
    return float(dollars / PER)


def _known_price(model: str, usage: Usage, base_url: str | None) -> float | None:
    import genai_prices

    provider, _, name = model.partition("/")
    where: dict[str, Any] = {"provider_api_url": base_url} if base_url else {"provider_id": provider}
    used = genai_prices.Usage(
        input_tokens=max(usage.input_tokens, usage.cached_tokens + usage.cache_write_tokens),
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        found = genai_prices.calc_price(used, name, **where)
    except (LookupError, ValueError):  # an unknown provider or model; tokens that it has no price for
        return None
    if found.model_price.input_mtok is None and found.model_price.output_mtok is None:
        return None
    return float(found.total_price)
