"""The server: sockets, the clock and signals, which only it and `links` know.

One thread, one loop. A connection's requests are answered in their order, however long one of them is parked; a
connection that sends what is no request, or too much of it, is closed, and no other is disturbed.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import secrets
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final, TypeAlias, cast

import attrs

from isr_broker import memory
from isr_broker.conversations import ControllerConversation, ControllerPlaces, Conversations, Place
from isr_broker.core import message_json
from isr_broker.core.effects import CONTROLLER
from isr_broker.core.message_json import Parcel
from isr_broker.core.messages import BrokerId, FetchMetadata, Message, Millis, TopicPartition
from isr_broker.core.stamps import Stamped, bare
from isr_broker.core.topics import Topics, random_topic_id
from isr_broker.environment import Address
from isr_broker.flow import OF_A_CONNECTION, OF_TLS, Flow, Holder
from isr_broker.links import IN_FLIGHT, Channel, ControllerChannel, Link, clock, parcels_in
from isr_broker.listener_names import SSL, Listener
from isr_broker.listeners import (
    admits,
    check_peer,
    client_context,
    everything,
    refusal,
    rights,
    server_context,
    serves,
    visible,
)
from isr_broker.runtime import NO_CLUSTER_ID, Runtime
from isr_broker.settings import MAX_INT, BadSetting, Settings
from isr_broker.storage.disk import Disk
from isr_broker.storage.disk_files import open_data_directory, open_folder
from isr_broker.storage.meta_properties import Claim, claim, cluster_in, new_id
from isr_broker.trace import Trace
from isr_broker.wire import protocol
from isr_broker.wire.decoder import BadFrame
from isr_broker.wire.group_requests import GroupRequests
from isr_broker.wire.requests import Reply, Requests, as_frame
from isr_broker.wire.turns import Gate

Content: TypeAlias = "protocol.Request | protocol.UnsupportedRequest | list[Parcel]"
"""What a frame says: a request, or what another broker has to say."""

Replies: TypeAlias = "asyncio.Queue[tuple[asyncio.Future[bytes], bool]]"
"""Answers to come, in the order of their requests, and whether each is a fetch's."""

_LATER: Final = 1.0
"""Seconds after which nothing refers to them."""

PIECE: Final = 1 << 18
"""Bytes that are read or written at once of what is larger."""
_LENGTH: Final = 4
"""Bytes that say how long a frame is."""


FILES_LEFT: Final = 200
"""Files that connections leave to logs and checkpoints, or a sixteenth of what a process may open; at most half."""
HANDSHAKE_SECONDS: Final = 10.0
"""A client has so long for the handshake of TLS."""


class Incoming(asyncio.StreamReaderProtocol):
    """What a connection sends: `counts` is told of it when it arrives, and of what came before anybody counted.

    With `waits` nothing is read before the handshake of TLS begins: its first bytes are not the stream's.
    """

    waits = False
    _early = 0
    _counts: Callable[[int], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody has connected."""
        if self.waits and isinstance(transport, asyncio.ReadTransport):
            transport.pause_reading()
        super().connection_made(transport)

    def begins(self, counts: Callable[[int], None]) -> None:
        """From now on it is counted."""
        self._counts = counts
        counts(self._early)

    def data_received(self, data: bytes) -> None:
        """Some bytes have arrived."""
        super().data_received(data)
        if self._counts is None:
            self._early += len(data)
        else:
            self._counts(len(data))


@attrs.define
class Server:
    """One broker on a port. `run` until it is stopped.

    `now` is its clock, and `made_of` what runs in it: a driver that steps a real broker brings its own.
    """

    me: BrokerId
    settings: Settings
    disk: Disk
    address: Address
    controller_at: Address
    with_controller: bool = False
    quiet: bool = True
    now: Callable[[], Millis] = clock
    made_of: type[Runtime] = Runtime
    advertised: Address | None = None
    """Where others find it, if that is not where it listens."""
    cluster: str = NO_CLUSTER_ID
    directory: str = attrs.field(factory=new_id)
    controllers: tuple[Address, ...] = ()
    """Where the controllers of a quorum are, of which one is active; none if there is one controller."""
    runtime: Runtime = attrs.field(init=False)
    requests: Requests = attrs.field(init=False)
    conversations: Conversations = attrs.field(init=False)
    links: dict[Address, Link] = attrs.field(factory=dict[Address, Link])
    channels: dict[Hashable, Channel[Parcel]] = attrs.field(factory=dict[Hashable, Channel[Parcel]])
    connections: set[asyncio.Task[None]] = attrs.field(factory=set[asyncio.Task[None]])
    _timer: asyncio.TimerHandle | None = None
    _timer_at: Millis | None = None
    _end_event: asyncio.Event = attrs.field(factory=asyncio.Event)
    _ready: asyncio.Event = attrs.field(factory=asyncio.Event)
    flow: Flow = attrs.field(init=False)
    _open: list[tuple[Listener, asyncio.Server]] = attrs.field(factory=list[tuple[Listener, asyncio.Server]])
    _tls: tuple[ssl.SSLContext | None, ssl.SSLContext | None] = (None, None)
    """For connections to the controller, and to other brokers."""
    _places: ControllerPlaces = attrs.field(init=False)
    _poll: tuple[Address, Message | Stamped] | None = None
    """The last question for news of the metadata, and where it was asked."""
    why: str = ""

    def __attrs_post_init__(self) -> None:
        self._places = ControllerPlaces(self.controllers, self.controller_at)

    # Outside

    def send(self, to: BrokerId, address: Address, source: BrokerId, message: Message | Stamped) -> None:
        """Send a message to another broker, or lose it."""
        if (place := self.conversations.takes(to, address, message)) is None:
            self.post(to, address, source, message)
            return
        if to == CONTROLLER and self.controllers:
            self._controller_channel(place).wakes()
            return
        channel = self.channels.get(place.key)
        if channel is None:
            longest = self.settings.socket_request_max_bytes
            tls = self._tls_to(address)
            channel = Channel(
                address, place.says, place.patience, longest, self._deliver_answers, self._report_loss, tls
            )
            self.channels[place.key] = channel
        channel.wakes()

    def _controller_channel(self, place: Place) -> ControllerChannel:
        channel = self.channels.get(type(place.says))
        if not isinstance(channel, ControllerChannel):
            channel = ControllerChannel(
                address=self._places.at,
                says=cast("ControllerConversation", place.says),
                patience=place.patience,
                longest=self.settings.socket_request_max_bytes,
                deliver_answers=self._hear_controller,
                report_loss=self._report_loss,
                places=self._places,
                seek=self._seeks,
            )
            self.channels[type(place.says)] = channel
        return channel

    def _seeks(self, address: Address, elsewhere: Address | None) -> None:
        """The active controller is not there: all that is for it goes elsewhere from now on."""
        if not self._places.leaves(address, elsewhere):
            return
        self.runtime.controller_at = self._places.at
        for channel in self.channels.values():
            if isinstance(channel, ControllerChannel) and channel.address != self._places.at:
                channel.leaves()

    def _hear_controller(self, parcels: list[Parcel]) -> None:
        """The active controller has answered. The question for news is asked again if another one has it."""
        self._deliver_answers(parcels)
        if self._poll is not None and self._poll[0] != self._places.at:
            self.post(CONTROLLER, self._places.at, self.me, self._poll[1])

    def post(self, to: BrokerId, address: Address, source: BrokerId, message: Message | Stamped) -> None:
        """Send a message in a frame of our own, which has no answer."""
        if isinstance(bare(message), FetchMetadata):
            self._poll = address, message
        link = self.links.get(address)
        if link is None:
            link = self.links[address] = Link(address, self.cluster, self._report_loss, tls=self._tls_to(address))
        link.put((source, to, message))

    def answer(self, to: BrokerId, answer: Message | Stamped) -> None:
        """Answer another broker's request."""
        self.requests.answers_broker(to, answer)

    def leaves(self, partition: TopicPartition) -> None:
        """This broker no longer asks whomever it did about a partition."""
        self.conversations.leaves(partition)

    def _deliver_answers(self, parcels: list[Parcel]) -> None:
        if self.runtime.running:
            self.runtime.receive_messages(parcels, self.now())
            self._set_timer()

    def _report_loss(self, parcels: list[Parcel]) -> None:
        if self.runtime.running:
            self.runtime.report_undelivered(parcels, self.now())
            self._set_timer()

    def stopped(self, why: str) -> None:
        """The broker has ended."""
        self.why = why
        self.log(why)
        self._end_event.set()

    def tells(self) -> None:
        """Say what is held for clients and others: an idle broker without connections holds nothing (SIGUSR1)."""
        known = 1 + 2 * len(self.connections) + 2 * len(self.links) + len(self.channels)
        stray = max(0, len(asyncio.all_tasks()) - known)
        self.log(f"holds {len(self.runtime.waiting)} requests, {len(self.connections)} connections, {stray} tasks more")

    def log(self, line: str) -> None:
        """A line for people, on stderr."""
        if not self.quiet:
            with contextlib.suppress(OSError):  # nobody reads any more
                print(f"{time.strftime('%H:%M:%S')} broker {self.me}: {line}", file=sys.stderr, flush=True)

    # Life

    async def start(self) -> None:
        """Listen, recover, and register with the controller."""
        mine, peers = await self._bind()
        topics = Topics()
        self.conversations = Conversations(
            self.me, self.settings, self.cluster, lambda name: topics.of(self.runtime.node.partitions).uuid(name)
        )
        self.runtime = self.made_of(
            self.me, self.settings, self.disk, mine, self.controller_at, self, self.cluster, self.directory
        )
        self.runtime.peers_at = peers
        self.runtime.wall = lambda: time.time_ns() // 1_000_000
        self.runtime.topic_ids = lambda: random_topic_id(secrets.randbits)
        self.runtime.trace = self._trace(self.me)
        self.runtime.controller_trace = self._trace(CONTROLLER) if self.with_controller else None
        self.runtime.start(time.time_ns(), self.now(), self.with_controller)
        self.requests = Requests(self.runtime, GroupRequests(self.runtime))
        self.requests.turns.fails = lambda error: self.log(f"a request is never answered, for {error!r}")
        self.flow = Flow(self.settings.insync_in_flight_max_bytes, self.now, self.log)
        self.requests.fetches.room = self.flow.room
        for _, opened in self._open:
            await opened.start_serving()
        self._set_timer()

    async def _bind(self) -> tuple[Address, Address | None]:
        """Take the ports, before anything is read from the disk; where clients find it, and brokers if elsewhere."""
        names = self.settings.listener_settings()
        for listener in names.all() or (everything(*self.address),):
            context = server_context(self.settings) if listener.tls else None
            opened = await asyncio.get_running_loop().create_server(
                partial(self._incoming, listener, context), listener.host, listener.port, start_serving=False
            )
            port = int(opened.sockets[0].getsockname()[1])
            self._open.append((attrs.evolve(listener, port=port), opened))
        wanted = [*names.controller_names[:1], names.inter_broker_name]
        ways = [client_context(self.settings) if names.protocol_of(name) == SSL else None for name in wanted]
        self._tls = (ways[0], ways[-1]) if names.listeners else (None, None)
        elsewhere = names.advertised_places()
        places = {one.name: elsewhere.get(one.name, (one.host, one.port)) for one, _ in self._open}
        client = next(one for one, _ in self._open if one.clients)
        peer = next(one for one, _ in self._open if one.brokers)
        return self.advertised or places[client.name], None if peer is client else places[peer.name]

    def _tls_to(self, address: Address) -> ssl.SSLContext | None:
        return self._tls[0 if address == self.controller_at else 1]

    @property
    def listeners(self) -> list[Listener]:
        """Where it listens, with the ports that it has."""
        return [listener for listener, _ in self._open]

    def _trace(self, node: BrokerId) -> Trace | None:
        """Where the steps of a core are noted, if they are to be."""
        if not self.settings.insync_trace_dir:
            return None
        trace = Trace(node, open_folder(self.settings.insync_trace_dir), self.settings.insync_trace_snapshots)
        trace.begins(self.now(), {"wall": time.time_ns(), "settings": dict(self.settings.properties())})
        return trace

    async def wait_for_end(self) -> str:
        """Wait until the broker has ended; why it has."""
        await self._end_event.wait()
        await self.close()
        return self.why

    def shut_down(self) -> None:
        """Begin to stop in order."""
        self.runtime.shut_down(self.now())
        self._set_timer()

    async def close(self) -> None:
        """Stop at once, as a killed process would: nothing is flushed and no mark is left."""
        self.runtime.running = False
        if self._timer is not None:
            self._timer.cancel()
        for _, opened in self._open:
            opened.close()
        calls: list[Link | Channel[Parcel]] = [*self.links.values(), *self.channels.values()]
        tasks = [*self.connections, *(call.task for call in calls if call.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _set_timer(self) -> None:
        if self.runtime.knows_itself():
            self._ready.set()
        parts = (self.runtime, self.requests.groups, self.requests.fetches, self.requests.turns)
        times = [part.deadline() for part in parts] if self.runtime.running else []
        alarm = min((at for at in times if at is not None), default=None)
        if alarm == self._timer_at:
            return
        self._timer_at = alarm
        if self._timer is not None:
            self._timer.cancel()
        if alarm is not None:
            self._timer = asyncio.get_running_loop().call_later(max(0, alarm - self.now()) / 1000, self._rings)

    def _rings(self) -> None:
        self._timer_at = None
        try:
            self.runtime.tick(self.now())
            self.requests.groups.tick(self.now())
            self.requests.fetches.tick(self.now())
            self.requests.turns.tick(self.now())
        except Exception as error:
            # Without its timers the broker would serve clients, and never notice that it leads no more.
            self.runtime.running = False
            self.stopped(f"halted: {error!r}")
            raise
        self._set_timer()

    # Connections

    def _incoming(self, listener: Listener, context: ssl.SSLContext | None) -> Incoming:
        incoming = Incoming(asyncio.StreamReader(), partial(self._accept, listener, context))
        incoming.waits = context is not None
        return incoming

    async def _accept(
        self,
        listener: Listener,
        context: ssl.SSLContext | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self.connections) >= self.settings.max_connections or not leaves_files(writer):
            self.log(f"{len(self.connections)} connections are open: another one is closed")
            writer.close()
            return
        self.connections.add(task)
        replies: Replies = asyncio.Queue(IN_FLIGHT)
        room = asyncio.Event()
        own = OF_A_CONNECTION + (OF_TLS if listener.tls else 0)
        holder = self.flow.open(lambda: writer.transport.abort(), room.set, own)
        incoming = writer.transport.get_protocol()
        assert isinstance(incoming, Incoming)
        if context is not None and not await self._shakes_hands(context, writer):
            self.flow.close(holder)
            self.connections.discard(task)
            return
        incoming.begins(partial(self.flow.arrives, holder))
        # What is written is known to be taken only when nothing of it is left here. With an upper limit of 0 asyncio's
        # TLS stops the writer of an empty buffer, and nothing starts it again.
        writer.transport.set_write_buffer_limits(high=1, low=0)
        answering = asyncio.get_running_loop().create_task(self._answer_in_order(replies, writer, holder))
        # Once the client takes no more answers there is nobody to read for, however many requests are on their way.
        answering.add_done_callback(lambda _: task.cancel())
        try:
            while self.runtime.running:
                size = int.from_bytes(await reader.readexactly(_LENGTH), "big", signed=True)
                if not 0 <= size <= self.settings.socket_request_max_bytes:
                    self.log(f"a frame of {size} bytes: connection closed")
                    return
                content = await self._content(listener, reader, size)
                if not await self._take(listener, content, size + _LENGTH, replies, holder, room):
                    return
                del content
                self._set_timer()
        except BadFrame as error:
            self.log(f"{error}: connection closed")
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            # The client has gone, or the broker ends: nobody is left to be told.
            pass
        finally:
            self.connections.discard(task)
            self.flow.close(holder)
            if self.flow.has_shrunk():
                asyncio.get_running_loop().call_later(_LATER, memory.give_back)
            answering.cancel()
            while not replies.empty():
                # Nobody will take it, so it need not be built.
                replies.get_nowait()[0].cancel()
            # In order it would stay, uncounted, until its client has taken what is left, or has said goodbye to TLS.
            writer.transport.abort()
            self.requests.turns.begin(self.requests.fetches.abandon(holder, self.now()))
            self._set_timer()

    async def _shakes_hands(self, context: ssl.SSLContext, writer: asyncio.StreamWriter) -> bool:
        """Whether a connection, which counts from its first moment, speaks TLS in time."""
        try:
            await writer.start_tls(context, ssl_handshake_timeout=HANDSHAKE_SECONDS)
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
            return False
        return True

    async def _content(self, listener: Listener, reader: asyncio.StreamReader, size: int) -> Content:
        """What a frame says. The frame itself is not kept: what is long in it, the request has.

        BadFrame if it is none, or, before the rest of it is read, if it is a broker's that may not come this way.
        """
        pieces = [await reader.readexactly(size if size <= PIECE else message_json.KEY_BYTES)]
        is_peer = message_json.is_peer(pieces[0])
        if is_peer:
            check_peer(listener, size)
        bytes_left = size - len(pieces[0])
        while bytes_left:
            piece = await reader.read(min(bytes_left, PIECE))
            if not piece:
                raise asyncio.IncompleteReadError(b"", bytes_left)
            pieces.append(piece)
            bytes_left -= len(piece)
        frame = b"".join(pieces)
        pieces.clear()
        return parcels_in(frame, self.cluster) if is_peer else protocol.parse(frame)

    async def _take(
        self, listener: Listener, content: Content, size: int, replies: Replies, holder: Holder, room: asyncio.Event
    ) -> bool:
        """What a frame of so many bytes says; False if the connection is to be closed, as it is after BadFrame."""
        if isinstance(content, list):
            self.flow.ends(holder, size)
            if not admits(listener, content):
                self.log(f"a message for {content[0][1]} on listener {listener.name}: connection closed")
                return False
            self.runtime.receive_messages(content, self.now())
            return True
        request = content
        if not serves(listener, request.key):
            self.log(f"API {request.key} on listener {listener.name}: connection closed")
            return False
        # Until a broker has learned of its own session nobody is served (SocketServer.enableRequestProcessing): its
        # metadata would name no broker, and some clients forget all that they know of and never ask again.
        await self._ready.wait()
        is_fetch = request.key == protocol.FETCH
        while holder.is_open and not holder.has_room(size, is_fetch):
            room.clear()
            await room.wait()
        self.flow.admits(holder, size, is_fetch)
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        await replies.put((future, is_fetch))

        def say(answer: bytes) -> None:
            self.flow.answers(holder, size, len(answer))
            future.set_result(answer)

        if isinstance(request, protocol.UnsupportedRequest):
            said = protocol.answer_to_unsupported(request)
            if said is not None:
                say(said)
            return said is not None

        def fail(why: str) -> None:
            self.log(f"{why}: connection closed")
            future.set_exception(ConnectionError(why))

        await self._serve(listener, request, as_frame(request, future.done, say, fail), holder, room)
        return True

    async def _serve(
        self, listener: Listener, request: protocol.Request, reply: Reply, holder: Holder, room: asyncio.Event
    ) -> None:
        """Have a request answered, and wait until what follows it may be served."""

        def fail(error: Exception) -> None:
            self.log(f"API {request.key} cannot be served further: {error!r}: connection closed")
            self.flow.close(holder)
            holder.abort()

        gate = Gate(fails=fail, owner=holder, holds=partial(self.flow.holds, holder))
        if (refused := refusal(listener, request)) is not None:
            reply(refused)
        elif request.key == protocol.API_VERSIONS:
            self.requests.serve(request, self.now(), lambda answer: reply(answer and visible(listener, answer)))
        else:
            self.requests.serve(request, self.now(), reply, gate)
        if gate.is_closed:
            gate.ends = room.set
            self._set_timer()
        try:
            # Once the connection is closed for what it holds, the rest of the request is not held either.
            while gate.is_closed and holder.is_open:
                room.clear()
                await room.wait()
        finally:
            gate.is_abandoned = True

    async def _answer_in_order(self, replies: Replies, writer: asyncio.StreamWriter, holder: Holder) -> None:
        try:
            while True:
                future, is_fetch = await replies.get()
                await self._write(future, writer, holder)
                # The next answer may be long in coming: this one is not kept for so long.
                del future
                self.flow.has_sent(holder, is_fetch)
        except ConnectionError as error:
            # The stream keeps the error, which would keep all that was to be written.
            error.__traceback__ = None

    async def _write(self, future: asyncio.Future[bytes], writer: asyncio.StreamWriter, holder: Holder) -> None:
        """Write an answer once it is there, a piece at a time: it is not copied, and it is known what is left."""
        whole = await future
        if len(whole) <= PIECE:
            writer.write(whole)
            await writer.drain()
            self.flow.sends(holder, len(whole))
            return
        answer = memoryview(whole)
        while answer:
            piece, answer = answer[:PIECE], answer[PIECE:]
            writer.write(piece)
            await writer.drain()
            self.flow.sends(holder, len(piece))


def leaves_files(writer: asyncio.StreamWriter) -> bool:
    """Whether files can still be opened beside a new connection: without them the next checkpoint ends the broker.

    The system gives the smallest number that is free, so the number of the connection says how many are open.
    """
    number = cast("socket.socket", writer.get_extra_info("socket")).fileno()
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return number < most - min(max(FILES_LEFT, most // 16), most // 2)


def _has_controller(settings: Settings, address: Address, controller_at: Address) -> bool:
    """A process has the controller that has a listener of its own for it, or that is where the controller is."""
    named = settings.listener_settings().all()
    if settings.controller_listener_names:
        return any(one.controller for one in named)
    return next(((one.host, one.port) for one in named if one.brokers), address) == controller_at


def run(
    me: BrokerId,
    settings: Settings,
    data: str,
    address: Address,
    controller_at: Address,
    cluster: str | None = None,
    ends_with_stdin: bool = False,
    advertised: Address | None = None,
    controllers: tuple[Address, ...] = (),
) -> str:
    """Run one broker on real files until it ends, and say why; SIGTERM and SIGINT stop it in order.

    SIGUSR1 has it say what it holds. `cluster` is the id of the cluster, None for that of the folder, or a new one.
    `controllers` are all of a quorum's, if there is one.

    If it `ends_with_stdin` it ends at once when that does, which is when whoever started it is gone. BadSetting
    if clients would not find it at `address`.
    """

    if not 0 <= me <= MAX_INT:
        raise BadSetting(f"the broker's number is {me}: it must be from 0 to {MAX_INT}")
    named = settings.listener_settings().all()
    if named and address not in [(one.host, one.port) for one in named if one.clients]:
        places = ", ".join(f"{one.name}://{one.host}:{one.port}" for one in named)
        raise BadSetting(f"listeners={places}: none of them is {address[0]}:{address[1]}, as --host and --port say")

    async def go() -> str:
        disk = open_data_directory(data, settings.insync_flush_record)
        controls = not controllers and _has_controller(settings, advertised or address, controller_at)
        claims = claim(disk, Claim(me, cluster_in(disk, cluster, controls)))
        server = Server(
            me,
            settings,
            disk,
            address,
            controller_at,
            with_controller=controls,
            quiet=False,
            advertised=advertised,
            cluster=claims.cluster,
            directory=claims.directory,
            controllers=controllers,
        )
        await server.start()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.shut_down)
        loop.add_signal_handler(signal.SIGUSR1, server.tells)
        if ends_with_stdin:
            loop.add_reader(sys.stdin.fileno(), server.stopped, "left alone")
        print(f"broker {me} listens on {address[0]}:{address[1]}", flush=True)
        print(f"broker {me}: whoever connects to {'; to '.join(map(rights, server.listeners))}", flush=True)
        return await server.wait_for_end()

    return asyncio.run(go())
