"""An HTTP client that connects to nothing but checked addresses, and reads bounded answers.

Every connection goes to an address that was checked a moment before, also after a redirect. Not covered:
proxies, whose connections we do not see; none is used, whatever the environment says.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
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
HEADERS = {
    "user-agent": "rl-cli (text extraction)",
    "accept": "text/html, text/*;q=0.9, */*;q=0.5",
    "accept-encoding": "gzip",
}
READABLE = ("text/", "application/json", "application/xml", "application/xhtml+xml", "application/ld+json")


@dataclass(frozen=True)
class Page:
    """What an address gave."""

    url: str
    """After redirects."""
    status: int
    content_type: str
    data: bytes
    charset: str
    """As the server named it, whatever it is."""


async def fetch(url: str) -> Page:
    """A page of the public web.

    Raises:
        ToolError: "invalid_url", "private_address", "unreachable", "timeout", "too_large" or "not_text".
    """
    check_url(url)
    try:
        async with asyncio.timeout(SECONDS), _client() as client:
            request = client.build_request("GET", url)
            for _ in range(REDIRECTS + 1):
                answer = await client.send(request, stream=True)
                async with aclosing(answer):
                    if answer.next_request is None:
                        return await _read(answer)
                    request = answer.next_request
            raise ToolError("unreachable", f"{url} redirects more than {REDIRECTS} times")
    except TimeoutError:
        raise ToolError("timeout", f"{url} did not answer within {SECONDS:g} seconds") from None
    except (PrivateAddress, NoAddress) as error:
        raise tool_error(error) from error
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, zlib.error) as error:
        raise ToolError("unreachable", f"{url} cannot be read: {error or type(error).__name__}") from error


async def _read(answer: httpx.Response) -> Page:
    kind = answer.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
    if not kind.startswith(READABLE) and not kind.endswith(("+xml", "+json")):
        raise ToolError("not_text", f"{answer.url} is {kind}, not text", "download it in the terminal")
    packed = answer.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("identity", "gzip", "x-gzip"):
        raise ToolError("unreachable", f"{answer.url} is packed as {packed[:100]}, which is not read here")
    told = answer.headers.get("content-length", "")
    known = int(told) if told.isdecimal() and len(told) < 20 else 0
    data = await _body(answer, packed != "identity") if known <= LARGEST else None
    if data is None:
        raise ToolError("too_large", f"{answer.url} is larger than {LARGEST // 1_000_000} MB")
    return Page(str(answer.url), answer.status_code, kind, data, answer.charset_encoding or "utf-8")


async def _body(answer: httpx.Response, packed: bool) -> bytes | None:
    """An answer's bytes, unpacked no further than the limit; None where there are more."""
    unpacker, data = zlib.decompressobj(zlib.MAX_WBITS | 16), bytearray()
    async for piece in answer.aiter_raw():
        data += unpacker.decompress(piece, LARGEST + 1 - len(data)) if packed else piece
        if len(data) > LARGEST:
            return None
        if unpacker.eof:
            break
    return bytes(data)


@asynccontextmanager
async def _client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        transport=_GuardedTransport(), trust_env=False, headers=HEADERS, timeout=SECONDS
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
