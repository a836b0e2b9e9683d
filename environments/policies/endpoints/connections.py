"""Connections to a server on this computer, in small pools.

A pool of the HTTP library looks at each of its idle connections for every request, which takes as long as the
request itself where there are many.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2

AT_ONCE = 8
"""Requests under way in a pool before the next pool is used."""


class SmallPools(httpx2.AsyncBaseTransport):
    """As many pools as the requests under way need.

    Args:
        encrypted: Whether the server is reached by https.
    """

    def __init__(self, encrypted: bool) -> None:
        self._verify: Any = httpx2.create_ssl_context(trust_env=False) if encrypted else False
        self._pools: list[httpx2.AsyncHTTPTransport] = []
        self._busy: list[int] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        number = next((n for n, busy in enumerate(self._busy) if busy < AT_ONCE), len(self._pools))
        if number == len(self._pools):
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=AT_ONCE)
            self._pools.append(httpx2.AsyncHTTPTransport(verify=self._verify, trust_env=False, limits=limits))
            self._busy.append(0)
        self._busy[number] += 1
        try:
            response = await self._pools[number].handle_async_request(request)
        except BaseException:
            self._busy[number] -= 1
            raise
        response.stream = _Counted(response.stream, self._busy, number)
        return response

    async def aclose(self) -> None:
        for pool in self._pools:
            await pool.aclose()


class _Counted(httpx2.AsyncByteStream):
    """A body; with its end, its request is over."""

    def __init__(self, inner: Any, busy: list[int], number: int) -> None:
        self._inner, self._busy, self._number, self._is_over = inner, busy, number, False

    def __aiter__(self) -> AsyncIterator[bytes]:
        body: AsyncIterator[bytes] = aiter(self._inner)
        return body

    async def aclose(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._busy[self._number] -= 1
        await self._inner.aclose()
