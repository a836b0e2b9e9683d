"""Who is asked for a web search: SearXNG by its address, Tavily or Brave by a key, of the environment."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from tools.dispatcher import ToolError

SECONDS = 30.0
HINT = "set SEARXNG_URL=http://HOST:PORT, TAVILY_API_KEY or BRAVE_API_KEY in the environment"
TAVILY = "https://api.tavily.com"
BRAVE = "https://api.search.brave.com"

Results = list[dict[str, str]]
"""Each with title, url and snippet."""
Provider = Callable[[httpx.AsyncClient, str, int, str], Awaitable[Results]]
"""Asked with a client, the query, how many, and its address or key."""


async def search_the_web(query: str, count: int) -> tuple[str, Results]:
    """The provider that answered, by its name, and what it found.

    Raises:
        ToolError: None is set up ("no_search_provider"), or it did not answer ("network").
    """
    name = provider_set()
    if name is None:
        raise ToolError("no_search_provider", "no web search is set up on this machine", HINT)
    variable, ask = PROVIDERS[name]
    try:
        async with httpx.AsyncClient(timeout=SECONDS, follow_redirects=True) as client:
            return name, await ask(client, query, count, os.environ[variable])
    except httpx.HTTPStatusError as error:
        said = f"{error.response.status_code} {error.response.reason_phrase}"
        raise ToolError("network", f"{name} answered {said}", f"is {variable} right?") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ToolError("network", f"{name} cannot be asked: {error or type(error).__name__}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolError("network", f"{name} gave an answer that cannot be read") from error


def provider_set() -> str | None:
    """The first provider that the environment sets up, or None."""
    return next((name for name, (variable, _) in PROVIDERS.items() if os.environ.get(variable)), None)


async def _searxng(client: httpx.AsyncClient, query: str, count: int, address: str) -> Results:
    answer = await client.get(f"{address.rstrip('/')}/search", params={"q": query, "format": "json"})
    return _results(answer.raise_for_status().json()["results"], "content", count)


async def _tavily(client: httpx.AsyncClient, query: str, count: int, key: str) -> Results:
    body = {"query": query, "max_results": count}
    answer = await client.post(f"{TAVILY}/search", json=body, headers={"authorization": f"Bearer {key}"})
    return _results(answer.raise_for_status().json()["results"], "content", count)


async def _brave(client: httpx.AsyncClient, query: str, count: int, key: str) -> Results:
    answer = await client.get(
        f"{BRAVE}/res/v1/web/search",
        params={"q": query, "count": count},
        headers={"x-subscription-token": key, "accept": "application/json"},
    )
    found = answer.raise_for_status().json().get("web") or {"results": []}
    return _results(found["results"], "description", count)


def _results(found: list[dict[str, Any]], snippet: str, count: int) -> Results:
    return [
        {
            "title": str(each.get("title") or ""),
            "url": str(each["url"]),
            "snippet": str(each.get(snippet) or "")[:1000],
        }
        for each in found[:count]
    ]


PROVIDERS: dict[str, tuple[str, Provider]] = {
    "SearXNG": ("SEARXNG_URL", _searxng),
    "Tavily": ("TAVILY_API_KEY", _tavily),
    "Brave": ("BRAVE_API_KEY", _brave),
}
"""Name -> the variable with its address or key, and how it is asked; the first that is set up is used."""
