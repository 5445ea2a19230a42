"""Connections to other brokers, with sockets: frames that need no answer, and conversations."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from typing import Final, Generic

import attrs

from isr_broker.conversations import ControllerConversation, ControllerPlaces, Conversation, P
from isr_broker.core import message_json
from isr_broker.core.message_json import Parcel
from isr_broker.core.messages import Millis
from isr_broker.environment import Address
from isr_broker.wire.decoder import BadFrame

IN_FLIGHT: Final = 100
"""Requests of one connection that may wait for their answers; more are not read."""
_WAITING: Final = 100_000
"""Messages that wait for a connection to a broker; more are lost."""


def clock() -> Millis:
    """Milliseconds, from some moment on, never backwards."""
    return time.monotonic_ns() // 1_000_000


def parcels_in(frame: bytes, cluster: str) -> list[Parcel]:
    """The messages of a frame of our own; BadFrame if it has anything else, or is of another cluster."""
    try:
        return message_json.decode(frame, cluster)
    except message_json.BadMessage as error:
        raise BadFrame(str(error)) from error


def _over(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """The other broker has gone, as far as this process has been told: what is sent now is lost."""
    return reader.at_eof() or writer.is_closing()


@attrs.define
class _Task:
    """A task that goes on when it is woken, and begins again when it has ended."""

    wake: asyncio.Event = attrs.field(init=False, factory=asyncio.Event)
    task: asyncio.Task[None] | None = attrs.field(init=False, default=None)

    def wakes(self) -> None:
        """There may be something to do."""
        self.wake.set()
        if self.task is None or self.task.done():
            self.task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        """What each kind of task does until there is nothing to do."""
        raise NotImplementedError


@attrs.define
class Link(_Task):
    """The way to another broker: what is said in one turn of the loop is sent together, and lost when it breaks.

    Each frame says of which `cluster` it is. `report_loss` is told of messages that cannot have arrived.
    """

    address: Address
    cluster: str
    report_loss: Callable[[list[Parcel]], None]
    waiting: list[Parcel] = attrs.field(factory=list[Parcel])
    tls: ssl.SSLContext | None = None

    def put(self, parcel: Parcel) -> None:
        """Send a message soon, or lose it."""
        if len(self.waiting) < _WAITING:
            self.waiting.append(parcel)
        self.wakes()

    async def _run(self) -> None:
        while True:
            try:
                reader, writer = await asyncio.open_connection(*self.address, ssl=self.tls)
            except OSError:
                await asyncio.sleep(0.05)
                parcels, self.waiting = self.waiting, []
                self.report_loss(parcels)
                return
            # Nothing comes this way, so the reading ends when the other broker has gone.
            reader_task = asyncio.get_running_loop().create_task(reader.read())
            reader_task.add_done_callback(lambda _: self.wake.set())
            try:
                await self._send(reader, writer, reader_task)
            except OSError:
                pass
            finally:
                reader_task.cancel()
                await asyncio.gather(reader_task, return_exceptions=True)
                writer.close()

    async def _send(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, reader_task: asyncio.Task[bytes]
    ) -> None:
        while not reader_task.done() and not _over(reader, writer):
            self.wake.clear()
            parcels, self.waiting = self.waiting, []
            for frame in message_json.frames(parcels, self.cluster):
                writer.write(frame)
                await writer.drain()
            await self.wake.wait()


@attrs.define
class Channel(_Task, Generic[P]):
    """A connection for one conversation: a request, its answer, the next (NodeToControllerRequestThread).

    Who does not answer in `patience` has lost the connection. `deliver_answers` takes what is answered, `report_loss`
    what never will.
    """

    address: Address
    says: Conversation[P]
    patience: Millis
    longest: int
    deliver_answers: Callable[[list[P]], None]
    report_loss: Callable[[list[P]], None]
    tls: ssl.SSLContext | None = None

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self.patience / 1000):
                    reader, writer = await asyncio.open_connection(*self.address, ssl=self.tls)
            except (OSError, TimeoutError):
                await asyncio.sleep(0.05)
                self.wake.clear()
                self.report_loss(self.says.take_loss())
                if self.wake.is_set():
                    continue
                return
            try:
                await self._converse(reader, writer)
            except (OSError, TimeoutError, EOFError, BadFrame):
                self.report_loss(self.says.take_loss())
            finally:
                writer.close()

    def _has_moved(self) -> bool:
        """Whether what is to be said is for somebody else by now."""
        return False

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until the other broker has gone, which may be noticed before anything is lost."""
        while True:
            self.wake.clear()
            if _over(reader, writer) or self._has_moved():
                return
            request = self.says.next()
            if request is None:
                await self.wake.wait()
                continue
            writer.write(request)
            async with asyncio.timeout(self.patience / 1000):
                await writer.drain()
                size = int.from_bytes(await reader.readexactly(4), "big", signed=True)
                if not 0 <= size <= self.longest:
                    raise BadFrame(f"an answer of {size} bytes")
                answer = await reader.readexactly(size)
            self.deliver_answers(self.says.take_answer(answer))


@attrs.define(kw_only=True)
class ControllerChannel(Channel[Parcel]):
    """A conversation with whichever controller is active: what has no answer is said again, to the next one.

    `places` knows where that is, as far as is known. `seek` is told that it is not where it was asked, and where it is
    if that one has said so.
    """

    says: ControllerConversation  # pyright: ignore[reportIncompatibleVariableOverride]  # never set again
    places: ControllerPlaces
    seek: Callable[[Address, Address | None], None]
    _writer: asyncio.StreamWriter | None = None

    async def _run(self) -> None:
        while True:
            self.address = self.places.at
            try:
                async with asyncio.timeout(self.patience / 1000):
                    reader, self._writer = await asyncio.open_connection(*self.address, ssl=self.tls)
                await self._converse(reader, self._writer)
            except (OSError, TimeoutError, EOFError, BadFrame):
                self.says.again()
                place, self.says.elsewhere = self.says.elsewhere, None
                self.seek(self.address, place)
                await asyncio.sleep(0.05)
                if not self.says.is_waiting():
                    return
            finally:
                self.leaves()

    def _has_moved(self) -> bool:
        return self.address != self.places.at

    def leaves(self) -> None:
        """Wait no longer for an answer on this connection."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None
