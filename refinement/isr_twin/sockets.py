"""Sockets of whoever plays a broker's surroundings: requests are held until they are answered, and nothing is hurried.

One thread does everything: it looks at the sockets in `Wire.pump`, and at no other time.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable
from typing import Final

import attrs

from isr_broker.wire import protocol
from isr_broker.wire.encoder import Answer

_CHUNK: Final = 1 << 16
_LENGTH: Final = 4


@attrs.define(eq=False)
class Link:
    """A connection, and what came on it that is no whole frame yet."""

    socket: socket.socket
    take: Callable[[Link, bytes], None]
    """What is done with each frame."""
    inbox: bytearray = attrs.field(factory=bytearray)
    open: bool = True

    def send(self, frame: bytes) -> None:
        """Send a frame; to a connection that has ended goes nothing."""
        if self.open:
            try:
                self.socket.sendall(frame)
            except OSError:
                self.open = False

    def answer(self, request: protocol.Request, fields: Answer) -> None:
        """Answer a request that came on this connection."""
        self.send(protocol.answer_to(request, fields))


@attrs.define(eq=False)
class Wire:
    """All sockets of one process."""

    selector: selectors.BaseSelector = attrs.field(factory=selectors.DefaultSelector)

    def listen(self, host: str, take: Callable[[Link, bytes], None]) -> int:
        """Listen on a free port, and say on which."""
        server = socket.create_server((host, 0))
        self.selector.register(server, selectors.EVENT_READ, lambda: self._accept(server, take))
        return int(server.getsockname()[1])

    def _accept(self, server: socket.socket, take: Callable[[Link, bytes], None]) -> None:
        accepted, _ = server.accept()
        self._watch(Link(accepted, take))

    def connect(self, address: tuple[str, int], take: Callable[[Link, bytes], None]) -> Link:
        """A connection to somebody; OSError if nobody listens there."""
        link = Link(socket.create_connection(address, timeout=10.0), take)
        self._watch(link)
        return link

    def watch_file(self, descriptor: int, ready: Callable[[], None]) -> None:
        """Look at another descriptor, too, such as standard input."""
        self.selector.register(descriptor, selectors.EVENT_READ, ready)

    def _watch(self, link: Link) -> None:
        link.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.selector.register(link.socket, selectors.EVENT_READ, lambda: self._read(link))

    def _read(self, link: Link) -> None:
        try:
            chunk = link.socket.recv(_CHUNK)
        except OSError:
            chunk = b""
        if not chunk:
            self.close(link)
            return
        link.inbox += chunk
        while link.open and (frame := _next_frame(link.inbox)) is not None:
            link.take(link, frame)

    def close(self, link: Link) -> None:
        """End a connection."""
        link.open = False
        if link.socket.fileno() >= 0:
            self.selector.unregister(link.socket)
            link.socket.close()

    def pump(self, seconds: float) -> None:
        """Take what has come, or what comes first within so many seconds."""
        for key, _ in self.selector.select(max(seconds, 0.0)):
            if key.fileobj in self.selector.get_map():  # not closed by the one before it
                key.data()


def _next_frame(inbox: bytearray) -> bytes | None:
    if len(inbox) < _LENGTH or len(inbox) < (end := _LENGTH + int.from_bytes(inbox[:_LENGTH], "big")):
        return None
    frame = bytes(inbox[_LENGTH:end])
    del inbox[:end]
    return frame


@attrs.define(eq=False)
class Client:
    """A connection on which questions are asked, by their correlation ids."""

    wire: Wire
    address: tuple[str, int]
    name: str
    link: Link = attrs.field(init=False)
    questions: dict[int, tuple[int, int]] = attrs.field(factory=dict[int, "tuple[int, int]"])
    answers: dict[int, protocol.Fields] = attrs.field(factory=dict[int, protocol.Fields])
    _last: int = 0

    def __attrs_post_init__(self) -> None:
        self.link = self.wire.connect(self.address, self.take)

    def take(self, link: Link, frame: bytes) -> None:
        """Keep an answer until somebody asks for it."""
        key, version = self.questions.pop(int.from_bytes(frame[:4], "big", signed=True))
        answer = protocol.parse_answer(key, version, frame)
        self.answers[answer.correlation] = answer.body

    def send(self, key: int, version: int, fields: Answer) -> int:
        """Ask something; the number under which the answer will come."""
        self._last += 1
        self.questions[self._last] = (key, version)
        self.link.send(protocol.ask(key, version, self._last, self.name, fields))
        return self._last
