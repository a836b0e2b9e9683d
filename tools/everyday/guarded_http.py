"""An HTTP client that connects to nothing but checked addresses, and reads bounded answers.

Every connection goes to an address that was checked a moment before, also after a redirect. Not covered:
proxies, whose connections we do not see; none is used, whatever the environment says.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

from tools.dispatcher import ToolError
from tools.everyday.addresses import NoAddress, PrivateAddress, check_url, checked_addresses, tool_error

LARGEST = 5_000_000
"""Bytes of an answer, unpacked."""
SECONDS = 30.0
REDIRECTS = 5
HEADERS = {"user-agent": "rl-cli (text extraction)", "accept": "text/html, text/*;q=0.9, */*;q=0.5"}
READABLE = ("text/", "application/json", "application/xml", "application/xhtml+xml", "application/ld+json")


@dataclass(frozen=True)
class Page:
    """What an address gave."""

    url: str
    """After redirects."""
    status: int
    content_type: str
    data: bytes
    encoding: str


async def fetch(url: str) -> Page:
    """A page of the public web.

    Raises:
        ToolError: "invalid_url", "private_address", "unreachable", "timeout", "too_large" or "not_text".
    """
    check_url(url)
    try:
        async with asyncio.timeout(SECONDS), _client() as client, client.stream("GET", url) as answer:
            return await _read(answer)
    except TimeoutError:
        raise ToolError("timeout", f"{url} did not answer within {SECONDS:g} seconds") from None
    except (PrivateAddress, NoAddress) as error:
        raise tool_error(error) from error
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise ToolError("unreachable", f"{url} cannot be read: {error or type(error).__name__}") from error


async def _read(answer: httpx.Response) -> Page:
    kind = answer.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
    if not kind.startswith(READABLE) and not kind.endswith(("+xml", "+json")):
        raise ToolError("not_text", f"{answer.url} is {kind}, not text", "download it in the terminal")
    told = answer.headers.get("content-length", "")
    data = bytearray()
    if not (told.isdigit() and int(told) > LARGEST):
        async for piece in answer.aiter_bytes(65536):
            data += piece
            if len(data) > LARGEST:
                break
        else:
            return Page(str(answer.url), answer.status_code, kind, bytes(data), answer.encoding or "utf-8")
    raise ToolError("too_large", f"{answer.url} is larger than {LARGEST // 1_000_000} MB")


@asynccontextmanager
async def _client() -> AsyncIterator[httpx.AsyncClient]:
    options: dict[str, Any] = {"follow_redirects": True, "max_redirects": REDIRECTS, "timeout": SECONDS}
    async with httpx.AsyncClient(
        transport=_GuardedTransport(), trust_env=False, headers=HEADERS, **options
    ) as client:
        yield client


class _GuardedNetwork(httpcore.AsyncNetworkBackend):
    """Resolves a name itself, and connects to what it has checked."""

    def __init__(self) -> None:
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (httpcore's interface)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception | None = None
        for address in await checked_addresses(host, port):
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:  # the next one may answer
                failure = error
        raise failure or httpcore.ConnectError(f"{host} has no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise httpcore.ConnectError("a socket file is no web address")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _GuardedTransport(httpx.AsyncHTTPTransport):
    """httpx's own, over the guarded network."""

    def __init__(self) -> None:
        super().__init__(trust_env=False)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=httpx.create_ssl_context(trust_env=False), network_backend=_GuardedNetwork()
        )
