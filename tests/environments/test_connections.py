"""Requests to a server on this computer go through as many small pools as those under way need."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from environments.policies.endpoints.connections import AT_ONCE, SmallPools

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Server:
    """Answers all that wait once `most` of them do; hangs up on /broken."""

    def __init__(self, most: int) -> None:
        self.most, self.connections, self.waiting = most, 0, 0
        self.all_there = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while b"/broken" not in await reader.readuntil(b"\r\n\r\n"):
                self.waiting += 1
                if self.waiting >= self.most:
                    self.all_there.set()
                await self.all_there.wait()
                writer.write(ANSWER)
        except asyncio.IncompleteReadError:
            pass
        writer.close()


def test_every_request_is_answered_and_connections_are_used_again() -> None:
    most = 2 * AT_ONCE + 3

    async def main() -> None:
        server, pools = Server(most), SmallPools(encrypted=False)
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with listening, httpx2.AsyncClient(transport=pools, trust_env=False) as client:
            answers = await asyncio.gather(*(client.get(url) for _ in range(most)))
            assert [answer.text for answer in answers] == ["ok"] * most
            assert pools._busy == [0, 0, 0]
            await asyncio.gather(*(client.get(url) for _ in range(most)))
            assert server.connections == most
            with pytest.raises(httpx2.RemoteProtocolError):
                await client.get(f"{url}/broken")
            assert pools._busy == [0, 0, 0]

    asyncio.run(main())
