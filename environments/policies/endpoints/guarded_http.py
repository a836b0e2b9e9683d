"""The HTTP client under both SDKs: it stays at the endpoint's address, and takes only so much from a server.

Imported late: it loads the HTTP library.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Iterator
from functools import cache, partial
from typing import Any

import httpx2

from environments.policies.base import PolicyError
from environments.policies.endpoints.connections import SmallPools
from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.endpoints.errors import CutStream, Refusal
from rl_cli.core.cuts import head

ERROR_BYTES = 1_000_000
"""Of the body of an error; the rest is not read."""
BODY_BYTES = 32_000_000
"""Of an answer in one piece of JSON."""
STREAM_BYTES = 256_000_000
"""Of a stream of events."""
_PIECE = 65_536
_BREATH = 1_000_000
"""Bytes after which others get their turn, however fast the server is."""


def guarded_client(make: type[httpx2.AsyncClient], endpoint: Endpoint, timeout: Any) -> httpx2.AsyncClient:
    """A client of the SDK's class `make`, without a proxy to this computer.

    It asks for answers that are not compressed, refuses to be sent elsewhere, and bounds the bytes of a body
    as they are after decompression.
    """
    way: dict[str, Any]
    if endpoint.is_loopback:
        encrypted = (endpoint.base_url or "").startswith("https:")
        way = {"trust_env": False, "transport": SmallPools(encrypted)}
    else:
        way = {"verify": _authorities()}
    return make(
        **way,
        timeout=timeout,
        follow_redirects=False,
        headers={"accept-encoding": "identity"},
        event_hooks={"response": [partial(_guard, who=endpoint.provider)]},
    )


@cache
def _authorities() -> ssl.SSLContext:
    """Whom every session trusts: reading them takes as long as a short request."""
    return httpx2.create_ssl_context()


async def _guard(response: httpx2.Response, who: str) -> None:
    if response.has_redirect_location:
        target = response.url.join(response.headers["location"])
        host = target.netloc.decode("ascii", "replace").rpartition("@")[2]
        path = target.path.removesuffix("/chat/completions").removesuffix("/v1/messages")
        place = head(f"{target.scheme}://{host}{path}", 200)
        raise Refusal(f"{who} sends you to {place}: set base_url to it if you trust it")
    kind = response.headers.get("content-type", "")
    is_error, is_json = response.status_code >= 400, "json" in kind and "ndjson" not in kind
    limit = ERROR_BYTES if is_error else BODY_BYTES if is_json else STREAM_BYTES
    encoding = response.headers.pop("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "", "gzip", "x-gzip", "deflate"):
        raise PolicyError(f"{who} answers in the compression '{head(encoding, 20)}', which nobody asked for")
    inflate = encoding not in ("identity", "")
    response.stream = _Bounded(response.stream, inflate, limit, is_error, who)


class _Bounded(httpx2.AsyncByteStream):
    """A body, decompressed, up to a limit: cut there, or an error."""

    def __init__(self, inner: Any, inflate: bool, limit: int, cut: bool, who: str) -> None:
        self._inner, self._limit, self._cut, self._who = inner, limit, cut, who
        self._inflate = zlib.decompressobj(wbits=47) if inflate else None  # gzip or zlib, as it comes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, rested = 0, 0
        async for raw in self._inner:
            for piece in self._pieces(raw):
                left = self._limit - size
                if len(piece) > left and not self._cut:
                    raise PolicyError(f"{self._who} sent more than {self._limit // 1_000_000} MB: given up")
                yield piece[:left]
                if len(piece) >= left:
                    return
                size += len(piece)
                if size - rested > _BREATH:
                    rested = size
                    await asyncio.sleep(0)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _pieces(self, raw: bytes) -> Iterator[bytes]:
        if self._inflate is None:
            yield raw
            return
        while True:
            try:
                piece = self._inflate.decompress(raw, _PIECE)
            except zlib.error as error:
                raise CutStream("it cannot be decompressed") from error
            raw = self._inflate.unconsumed_tail
            if piece:
                yield piece
            if len(piece) < _PIECE and not raw:
                return
