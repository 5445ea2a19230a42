"""The network between brokers and clients, of which every directed link can be cut, slowed and mended.

`Proxies`, the portable way: in front of every broker a TCP proxy, to whose address everybody connects. Who connects
says so: brokers in the first frame of a connection, which goes one way only; whoever else speaks Kafka's protocol is a
client. A cut link takes bytes and drops them, as a firewall that answers nothing; a connection that lost bytes is
closed when the link is mended, for its stream has a hole. `namespaces` has the other way, with real packets.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import struct
import threading
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import attrs

from isr_broker.core.effects import CONTROLLER
from isr_broker.core.message_json import PEER_API
from isr_cluster.identity import CONTROLLER_BROKER
from isr_cluster.ports import HOST, free_ports
from isr_cluster.processes import Address

CLIENTS: Final = 0
"""The node that all clients are."""

Node: TypeAlias = int
"""A broker's number, or CLIENTS."""
Way: TypeAlias = tuple[Node, Node]
"""From whom, to whom."""


class Network(Protocol):
    """Where brokers listen and are found, and what can be done to the links between them."""

    kind: str
    slows: bool
    """Whether a link can be slowed."""
    hosts: dict[int, str]
    ports: dict[int, int]
    advertised: dict[int, tuple[str, int]]
    inside: dict[int, tuple[str, ...]]
    controller: tuple[Address, Address]
    """Where a controller's listener of its own is, if the system has one: where it listens, and where it is found."""

    def cut(self, source: Node, to: Node) -> None:
        """From now on nothing from the one reaches the other."""
        ...

    def slow(self, source: Node, to: Node, seconds: float) -> None:
        """From now on everything takes so much longer."""
        ...

    def mend(self) -> None:
        """Every link is whole again."""
        ...

    def dropped_bytes(self) -> Mapping[Way, int]:
        """Bytes lost on each link so far."""
        ...

    def delayed_bytes(self) -> Mapping[Way, int]:
        """Bytes that were slowed on each link so far."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


@attrs.define(eq=False)
class Link:
    """One direction between two nodes."""

    is_cut: bool = False
    delay: float = 0.0
    dropped_bytes: int = 0
    delayed_bytes: int = 0


@attrs.define(eq=False)
class Connection:
    """A connection through a proxy; `has_hole` once bytes were lost, `over` once an end of it was, out of sight."""

    writers: tuple[asyncio.StreamWriter, asyncio.StreamWriter]
    has_hole: bool = False
    over: bool = False

    def close(self) -> None:
        """Both ends."""
        for writer in self.writers:
            writer.close()


_OPENING: Final = re.compile(rb"\[\[\s*(-?\d+),")
_BROKER: Final = re.compile(rb"broker-(\d+)-.*|raft-client-(\d+)|(\d+)", re.DOTALL)
_ENOUGH: Final = 64


def source_of(data: bytes) -> Node | None:
    """Who connects, by the first bytes that it says; None if that takes more bytes.

    A broker says its number as its client id (`isr_broker.conversations`), or in a frame of its own (`peers`). Apache
    Kafka's client ids differ by what a connection is for: `broker-2-fetcher-0`, `raft-client-2` for metadata, and `2`
    for heartbeats and AlterPartition (NodeToControllerChannelManager).
    """
    if len(data) < 6:
        return None
    if struct.unpack_from(">h", data, 4)[0] != PEER_API:
        # A request's header: key, version, correlation, and the client's name after its length.
        size = struct.unpack_from(">h", data, 12)[0] if len(data) >= 14 else _ENOUGH
        if len(data) < min(4 + struct.unpack_from(">i", data)[0], 14 + max(0, min(size, _ENOUGH))):
            return None
        broker = _BROKER.fullmatch(data, 14, 14 + max(0, size))
        return int(broker[broker.lastindex or 1]) if broker else CLIENTS
    opening = _OPENING.match(data[12:])
    if opening is None:
        return CLIENTS if len(data) > _ENOUGH else None
    source = int(opening[1])
    return CONTROLLER_BROKER if source == CONTROLLER else source


class Proxies:
    """A proxy in front of every broker, all of them in one thread."""

    kind = "proxies"
    slows = True

    def __init__(self, brokers: Sequence[int]) -> None:
        ports = free_ports(2 * len(brokers) + 2)
        self.hosts: dict[int, str] = {}
        self.ports = dict(zip(brokers, ports[: len(brokers)], strict=True))
        self.advertised = {b: (HOST, port) for b, port in zip(brokers, ports[len(brokers) : -2], strict=True)}
        self.controller = ((HOST, ports[-2]), (HOST, ports[-1]))
        self.inside: dict[int, tuple[str, ...]] = {}
        self.links: dict[Way, Link] = {(a, b): Link() for a in (CLIENTS, *brokers) for b in (CLIENTS, *brokers)}
        self.connections: set[Connection] = set()
        self._servers: list[asyncio.Server] = []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self.loop).result(30)

    async def _listen(self) -> None:
        for broker, found in self.advertised.items():
            await self._stands_before(broker, found, (HOST, self.ports[broker]))
        listens, found = self.controller
        await self._stands_before(CONTROLLER_BROKER, found, listens)

    async def _stands_before(self, broker: int, advertised_address: Address, listens: Address) -> None:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                await self._accept(broker, listens, reader, writer)
            writer.close()

        self._servers.append(await asyncio.start_server(accept, *advertised_address))

    async def _accept(
        self, broker: int, listens: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        opening = b""
        while (source := source_of(opening)) is None:
            more = await reader.read(65_536)
            if not more:
                return
            opening += more
        far_reader, far_writer = await asyncio.open_connection(*listens)
        connection = Connection((writer, far_writer))
        self.connections.add(connection)
        there, back = self.links[source, broker], self.links[broker, source]
        try:
            await asyncio.gather(
                _pump(opening, reader, far_writer, there, connection), _pump(b"", far_reader, writer, back, connection)
            )
        finally:
            if not connection.over:
                self.connections.discard(connection)
                connection.close()
            # Else one end has gone, and the other may not know until the link is mended.

    def cut(self, source: Node, to: Node) -> None:
        """From now on nothing from the one reaches the other."""
        self.links[source, to].is_cut = True

    def slow(self, source: Node, to: Node, seconds: float) -> None:
        """From now on everything takes so much longer."""
        self.links[source, to].delay = seconds

    def mend(self) -> None:
        """Every link is whole again."""
        for link in self.links.values():
            link.is_cut, link.delay = False, 0.0
        asyncio.run_coroutine_threadsafe(self._close_broken_connections(), self.loop).result(30)

    async def _close_broken_connections(self) -> None:
        for connection in [c for c in self.connections if c.has_hole or c.over]:
            self.connections.discard(connection)
            connection.close()

    def dropped_bytes(self) -> Mapping[Way, int]:
        """Bytes lost on each link so far."""
        return {way: link.dropped_bytes for way, link in self.links.items() if link.dropped_bytes}

    def delayed_bytes(self) -> Mapping[Way, int]:
        """Bytes that were slowed on each link so far."""
        return {way: link.delayed_bytes for way, link in self.links.items() if link.delayed_bytes}

    def close(self) -> None:
        """No proxy listens any more."""

        async def end() -> None:
            for server in self._servers:
                server.close()
            for connection in list(self.connections):
                connection.close()
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        if self.loop.is_running():
            asyncio.run_coroutine_threadsafe(end(), self.loop).result(30)
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(10)
            self.loop.close()


async def _pump(
    opening: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: Link, connection: Connection
) -> None:
    """Everything that is read is written, later if the link is slow, never if it is cut."""
    loop, due = asyncio.get_running_loop(), 0.0
    data = opening or await _more(reader)
    while data:
        if link.is_cut:
            link.dropped_bytes += len(data)
            connection.has_hole = True
        elif not connection.has_hole:
            if link.delay or due > loop.time():
                link.delayed_bytes += len(data)
                due = max(due, loop.time() + link.delay)
                loop.call_at(due, _late, writer, data, link, connection)
            else:
                writer.write(data)
                with contextlib.suppress(OSError):
                    await writer.drain()
        data = await _more(reader)
    if link.is_cut:
        connection.over = True
    else:
        connection.close()


def _late(writer: asyncio.StreamWriter, data: bytes, link: Link, connection: Connection) -> None:
    if link.is_cut:
        link.dropped_bytes += len(data)
        connection.has_hole = True
    elif not connection.has_hole and not writer.is_closing():
        writer.write(data)


async def _more(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(65_536)
    except OSError:
        return b""
