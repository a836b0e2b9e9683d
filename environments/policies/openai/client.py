"""The OpenAI SDK's client for an endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.openai.request import is_openai

if TYPE_CHECKING:
    from openai import AsyncOpenAI

OPENAI_URL = "https://api.openai.com/v1"


def open_client(endpoint: Endpoint) -> AsyncOpenAI:
    """The SDK's client: without retries of its own, for this endpoint only."""
    import httpx2
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    from environments.policies.endpoints.guarded_http import guarded_client

    timeout = httpx2.Timeout(600, connect=10)
    headers = dict(endpoint.headers)
    client = AsyncOpenAI(
        api_key=endpoint.api_key or "none",
        base_url=endpoint.base_url or OPENAI_URL,
        max_retries=0,
        timeout=timeout,
        default_headers=headers,
        http_client=guarded_client(DefaultAsyncHttpxClient, endpoint, timeout),
    )
    if not is_openai(endpoint):  # what the SDK reads from the environment is nobody else's business
        client.organization = client.project = client.admin_api_key = None
        client._custom_headers = headers
    return client
