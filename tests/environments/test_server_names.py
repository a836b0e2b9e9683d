"""Errors name the server that was asked, not the provider whose form it speaks."""

from __future__ import annotations

import pytest

from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.endpoints.errors import StreamedError, classify

OVERLOADED = StreamedError({"error": {"message": "busy", "code": 503, "type": "server_error"}})


@pytest.mark.parametrize(
    ("provider", "address", "named"),
    [
        ("openai", None, "openai"),
        ("openai", "https://api.openai.com/v1", "openai"),
        ("openai", "http://gpu7:8000/v1", "gpu7:8000"),
        ("anthropic", "http://127.0.0.1:9000", "127.0.0.1:9000"),
        ("openrouter", "https://openrouter.ai/api/v1", "openrouter"),
        ("our-vllm", "http://gpu7:8000/v1", "our-vllm"),
    ],
)
def test_a_server_at_an_address_of_its_own_is_named_by_it(
    provider: str, address: str | None, named: str
) -> None:
    failure = classify(OVERLOADED, Endpoint(provider, "small", address, "key"))
    assert failure
    assert str(failure.error).startswith(f"{named} ")
