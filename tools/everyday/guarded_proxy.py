"""An HTTP proxy on loopback that connects to nothing but checked addresses: what the browser goes through.

So redirects, scripts, images and web sockets of a page are bound as its address is. Whatever is refused is
answered with status 403 and the header of `REFUSED`.
"""

from __future__ import annotations

import asyncio
import contextlib
from urllib.parse import urlsplit

from tools.everyday.addresses import NoAddress, PrivateAddress, checked_addresses

REFUSED = "x-rl-cli-refused"
LONGEST_HEAD = 65536
HEAD_SECONDS = 30.0
CONNECT_SECONDS = 15.0


class GuardedProxy:
    """Serves from `start` to `stop`."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._served: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Returns its address."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=LONGEST_HEAD)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        if self._server:
            self._server.close()
        for task in self._served:
            task.cancel()
        await asyncio.gather(*self._served, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._served.add(task)
        try:
            await _serve(reader, writer)
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # one side went away, or is no HTTP client
        finally:
            self._served.discard(task)
            writer.close()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    async with asyncio.timeout(HEAD_SECONDS):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request, *fields = head.removesuffix("\r\n\r\n").split("\r\n")
    method, target, version = request.split(" ")
    tunnel = method == "CONNECT"
    parts = urlsplit(f"//{target}" if tunnel else target)
    port = parts.port or (443 if tunnel else 80)
    try:
        if not tunnel and parts.scheme != "http":
            raise PrivateAddress("only http and https pages can be opened")
        there = await _connect(parts.hostname or "", port)
    except (PrivateAddress, NoAddress, OSError, TimeoutError) as error:
        return await _refuse(writer, error)
    try:
        if tunnel:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:  # one request per connection: the next may be meant for another server
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            kept = [f for f in fields if not f.lower().startswith(("proxy-", "connection:", "keep-alive:"))]
            lines = [f"{method} {path} {version}", *kept, "Connection: close", "", ""]
            there[1].write("\r\n".join(lines).encode("latin-1"))
        await _both_ways((reader, writer), there)
    finally:
        there[1].close()


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _connect(host: str, port: int) -> Stream:
    failure: OSError = ConnectionError(f"{host} has no address")
    for address in await checked_addresses(host, port):
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await asyncio.open_connection(address, port)
        except OSError as error:  # the next address may answer
            failure = error
    raise failure


async def _refuse(writer: asyncio.StreamWriter, error: Exception) -> None:
    private = isinstance(error, PrivateAddress)
    status = "403 Forbidden" if private else "502 Bad Gateway"
    said = f"{error or 'no answer in time'}\n".encode()
    head = f"HTTP/1.1 {status}\r\n{REFUSED}: {'private' if private else 'unreachable'}\r\n"
    head += f"Content-Type: text/plain\r\nContent-Length: {len(said)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode("latin-1") + said)
    await writer.drain()


async def _both_ways(one: Stream, other: Stream) -> None:
    """Until the side that answers has ended, or either is gone."""
    asking = asyncio.create_task(_copy(one[0], other[1]))
    try:
        await _copy(other[0], one[1])
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    with contextlib.suppress(OSError):  # the other side may be gone already
        writer.write_eof()
