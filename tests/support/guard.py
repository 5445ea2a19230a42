"""A test that starts a process or opens a socket says so with a marker, or it fails.

Python announces both to audit hooks, whoever asks for them. What a library's own machine code does is not announced.
"""

import sys
import threading
from collections.abc import Callable, Collection
from multiprocessing import util
from typing import cast

import pytest

STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"}
CONNECTS = {"socket.bind", "socket.connect"}
MAY_START = frozenset({"processes", "browser", "spark", "rumur", "tlc", "kafka"})
MAY_CONNECT = frozenset({"sockets", "browser", "spark"})


class Guard:
    """What the test that runs may do, and what it did that it may not; between tests everything is allowed."""

    def __init__(self) -> None:
        self.markers: frozenset[str] | None = None
        self.seen: list[str] = []
        self.earlier: frozenset[int | None] = frozenset()
        """Threads that an earlier test left behind: a client that connects again is not of the test that runs."""

    def watch(self, markers: Collection[str] | None) -> None:
        self.markers = None if markers is None else frozenset(markers)
        self.seen.clear()
        here = threading.get_ident()
        self.earlier = frozenset(t.ident for t in threading.enumerate() if t.ident != here)

    def notice(self, event: str, about: object = "") -> None:
        if self.markers is None or threading.get_ident() in self.earlier:
            return
        if event in STARTS and not self.markers & MAY_START:
            self.refuse(f"{event} ({about}): a test that starts processes is marked so: pytest.mark.processes")
        if event in CONNECTS and not self.markers & MAY_CONNECT:
            self.refuse(f"{event} ({about}): a test that opens sockets is marked so: pytest.mark.sockets")

    def refuse(self, why: str) -> None:
        self.seen.append(why)
        pytest.fail(why)

    def settle(self) -> None:
        """Fail the test also for what a thread did, or what somebody caught."""
        if self.seen:
            pytest.fail("\n".join(self.seen), pytrace=False)


GUARD = Guard()


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if event in STARTS or event in CONNECTS:
        GUARD.notice(event, arguments[0] if arguments else "")


def _announced(spawn: Callable[..., int]) -> Callable[..., int]:
    """multiprocessing starts servers and spawned processes in a way of its own, which no audit hook is told."""

    def spawned(path: object, args: object, passfds: object) -> int:
        GUARD.notice("os.posix_spawn", path)
        return spawn(path, args, passfds)

    return spawned


def install() -> None:
    """Once in each process of tests; an audit hook stays."""
    sys.addaudithook(_audit)
    util.spawnv_passfds = _announced(cast("Callable[..., int]", vars(util)["spawnv_passfds"]))
