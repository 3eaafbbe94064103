"""The cable between a host and Redis: it can be pulled out, and put back in."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class _Connection:
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    is_dropped: bool = False


class Proxy:
    """Listens on loopback and passes on to `port`. Both kinds of cut answer nothing and refuse nothing while they last.

    `hold`: what was sent meanwhile comes afterwards, as when packets are sent again. `drop`: Redis forgets the connections at
    once; the host hears of that only when it next says something, and never while it listens alone."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._connections: set[_Connection] = set()
        self._server = self._loop.run_until_complete(self._listen())
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()

    def cut(self, *, drop: bool) -> None:
        self._call(self._cut, drop)

    def mend(self) -> None:
        self._call(self._open.set)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, function: object, *arguments: object) -> None:
        self._loop.call_soon_threadsafe(function, *arguments)  # type: ignore[arg-type]

    async def _listen(self) -> asyncio.Server:
        self._open.set()
        return await asyncio.start_server(self._connected, "127.0.0.1", 0)

    def _cut(self, drop: bool) -> None:
        self._open.clear()
        for connection in self._connections if drop else ():
            connection.is_dropped = True
            connection.server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.close()
            return
        connection = _Connection(client=writer, server=to_server)
        self._connections.add(connection)
        try:
            await asyncio.gather(self._up(reader, connection), self._down(from_server, connection))
        finally:
            self._connections.discard(connection)
            for end in (writer, to_server):
                end.close()

    async def _up(self, reader: asyncio.StreamReader, connection: _Connection) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                await self._open.wait()
                if connection.is_dropped:
                    break
                connection.server.write(data)
                await connection.server.drain()
        connection.server.close()
        if connection.is_dropped:
            connection.client.close()

    async def _down(self, reader: asyncio.StreamReader, connection: _Connection) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                await self._open.wait()
                connection.client.write(data)
                await connection.client.drain()
        if not connection.is_dropped:
            await self._open.wait()
            connection.client.close()

    async def _end(self) -> None:
        self._server.close()
        mine = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not mine]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
