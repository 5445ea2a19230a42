"""A voter of the metadata quorum on a port: sockets and the clock for `voter_runtime`.

One thread, one loop, as `server` has. A connection's requests are answered in their order; one that sends what is no
request is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs

from isr_broker.core.messages import Millis
from isr_broker.core.quorum_messages import VoterId, VoterSet
from isr_broker.links import IN_FLIGHT, Channel, Link, clock
from isr_broker.quorum_settings import QuorumSettings
from isr_broker.settings import BadSetting, Settings
from isr_broker.storage.disk import Disk
from isr_broker.storage.disk_files import open_data_directory
from isr_broker.storage.meta_properties import Claim, NotOurs, claim, cluster_in, read_claim
from isr_broker.storage.quorum_disk import QuorumDisk, write_first_checkpoint
from isr_broker.voter_runtime import VoterRuntime
from isr_broker.wire import protocol
from isr_broker.wire.control_records import checkpoint
from isr_broker.wire.controller_channels import directory_of, directory_uuid
from isr_broker.wire.decoder import BadFrame
from isr_broker.wire.protocol import Answer
from isr_broker.wire.quorum_channel import Outcome
from isr_broker.wire.quorum_requests import Quorum

_Replies: TypeAlias = "asyncio.Queue[asyncio.Future[bytes]]"


@attrs.define
class VoterServer:
    """One voter: what its runtime needs of the world."""

    quorum: Quorum
    settings: QuorumSettings
    disk: Disk
    runtime: VoterRuntime = attrs.field(init=False)
    channels: dict[VoterId, Channel[Outcome]] = attrs.field(factory=dict[VoterId, Channel[Outcome]])
    connections: set[asyncio.Task[None]] = attrs.field(factory=set[asyncio.Task[None]])
    why: str = ""
    _end_event: asyncio.Event = attrs.field(factory=asyncio.Event)
    _timer: asyncio.TimerHandle | None = None

    # Outside

    def wakes(self, to: VoterId) -> None:
        """There is something to ask of another voter."""
        channel = self.channels.get(to)
        if channel is None:
            patience = self.settings.controller_quorum_request_timeout_ms
            longest, says = self.settings.socket_request_max_bytes, self.runtime.channels[to]
            channel = Channel(self.runtime.quorum.places[to], says, patience, longest, self._delivers, self._delivers)
            self.channels[to] = channel
        channel.address = self.runtime.quorum.places[to]
        channel.wakes()

    def wall(self) -> Millis:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def chance(self, below: int) -> int:
        """A random number."""
        return secrets.randbelow(below)

    def stopped(self, why: str) -> None:
        """The voter has ended."""
        self.why = why
        self.log(why)
        self._end_event.set()

    def log(self, line: str) -> None:
        """A line for people, on stderr."""
        with contextlib.suppress(OSError):  # nobody reads any more
            print(f"{time.strftime('%H:%M:%S')} voter {self.quorum.me}: {line}", file=sys.stderr, flush=True)

    # Life

    async def run(self) -> str:
        """Serve until the voter ends; why it has."""
        voters = None if self.quorum.dynamic else frozenset(self.quorum.places)
        self.runtime = self.made_of(QuorumDisk.open(self.disk, voters, Settings()))
        host, port = self.settings.listener() if self.quorum.dynamic else self.quorum.places[self.quorum.me]
        listener = await asyncio.start_server(self._accept, host, port)
        self.runtime.start(clock())
        self._sets_alarm()
        print(f"voter {self.quorum.me} listens on {host}:{port}", flush=True)
        await self._end_event.wait()
        listener.close()
        if self._timer is not None:
            self._timer.cancel()
        tasks = [*self.connections, *(call.task for call in self.calls() if call.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return self.why

    def made_of(self, files: QuorumDisk) -> VoterRuntime:
        """What runs in it, with these files."""
        return VoterRuntime(self.quorum, self.settings, files, self)

    def calls(self) -> Sequence[Channel[Outcome] | Link]:
        """Its connections to others."""
        return tuple(self.channels.values())

    def shut_down(self) -> None:
        """Begin to stop in order."""
        self.does(lambda: self.runtime.shut_down(clock()))

    def _delivers(self, outcomes: list[Outcome]) -> None:
        self.does(lambda: self.runtime.receive(outcomes, clock()))

    def _rings(self) -> None:
        self.does(lambda: self.runtime.tick(clock()))

    def does(self, step: Callable[[], None]) -> None:
        """One step of the runtime. After one that fails nobody knows what is on the disk: the voter ends."""
        if not self.runtime.running:
            return
        try:
            step()
        except Exception as error:
            self.runtime.running = False
            self.stopped(f"halted: {error!r}")
            raise
        self._sets_alarm()

    def _sets_alarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.runtime.running:
            wait = max(0, self.runtime.deadline() - clock()) / 1_000
            self._timer = asyncio.get_running_loop().call_later(wait, self._rings)

    # Connections

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.connections.add(task)
        replies: _Replies = asyncio.Queue(IN_FLIGHT)
        writing = asyncio.get_running_loop().create_task(_answer_in_order(replies, writer))
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big", signed=True)
                if not 0 <= size <= self.settings.socket_request_max_bytes:
                    raise BadFrame(f"a request of {size} bytes")
                frame = await reader.readexactly(size)
                if self.hears(frame):
                    continue
                answer = self._serve(frame)
                if answer is None:
                    break
                await replies.put(answer)
        except (OSError, EOFError):
            pass
        except BadFrame as error:
            self.log(f"a connection is closed: {error}")
        finally:
            writing.cancel()
            self.connections.discard(task)
            writer.close()

    def hears(self, frame: bytes) -> bool:
        """Whether a frame is one that has no answer, and was taken; BadFrame if it is none at all."""
        return False

    def _serve(self, frame: bytes) -> asyncio.Future[bytes] | None:
        """The answer to come to a request; None if it is served in no version that is asked for."""
        request = protocol.parse(frame, self.runtime.versions)
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        if isinstance(request, protocol.UnsupportedRequest):
            refusal = protocol.answer_to_unsupported(request, self.runtime.versions)
            if refusal is None:
                self.log(f"a connection is closed: API {request.key}, version {request.version} is not served")
                return None
            future.set_result(refusal)
            return future

        def reply(answer: Answer) -> None:
            if not future.done():
                future.set_result(protocol.answer_to(request, answer))

        self.does(lambda: self.runtime.serve(request, reply, clock()))
        return future


async def _answer_in_order(replies: _Replies, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while True:
            writer.write(await (await replies.get()))
            await writer.drain()


def run(
    me: VoterId,
    cluster: str | None,
    settings: QuorumSettings,
    data: str,
    ends_with_stdin: bool = False,
    make: Callable[[Quorum, QuorumSettings, Disk], VoterServer] = VoterServer,
) -> str:
    """Run one voter on real files until it ends, and say why; SIGTERM and SIGINT stop it in order.

    NotOurs if the folder was not formatted, or is another node's. If it `ends_with_stdin` it ends at once when that
    does.
    """
    places = settings.servers() if settings.dynamic else settings.places()
    if not settings.dynamic and me not in places:
        raise BadSetting(f"controller.quorum.voters={settings.controller_quorum_voters}: {me} is none of them")

    async def go() -> str:
        disk = open_data_directory(data)
        found = read_claim(disk)
        if found is None:
            raise NotOurs(f"{data} is not formatted: --format does that, once for each new folder")
        claims = claim(disk, Claim(me, found.cluster if cluster is None else cluster))
        quorum = Quorum(
            me=me,
            cluster=claims.cluster,
            directory=directory_uuid(claims.directory),
            listener=settings.controller_listener_names,
            places=places,
            dynamic=settings.dynamic,
        )
        server = make(quorum, settings, disk)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.shut_down)
        if ends_with_stdin:
            loop.add_reader(sys.stdin.fileno(), server.stopped, "left alone")
        return await server.run()

    return asyncio.run(go())


def format_folder(me: VoterId, cluster: str, data: str, voters: VoterSet | None = None) -> Claim:
    """Make a new folder a node's, as `kafka-storage.sh format` does; NotOurs if it is somebody's.

    With `voters` it is that of one of them, and has the directory id that they give it.
    """
    disk = open_data_directory(data)
    if (found := read_claim(disk)) is not None:
        raise NotOurs(f"{data} is formatted already: node {found.broker} of cluster {found.cluster}")
    cluster = cluster_in(disk, cluster, begins=False)
    if voters is None:
        return claim(disk, Claim(me, cluster))
    directory = voters[me].directory if me in voters else None
    if directory is None:
        raise BadSetting(f"--initial-controllers: {me} is none of them")
    write_first_checkpoint(disk, checkpoint(voters, b"", 0, time.time_ns() // 1_000_000))
    return claim(disk, Claim(me, cluster, directory_of(directory)))
