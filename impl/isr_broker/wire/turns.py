"""Requests that are long to serve are served a piece at a time, so that nobody else waits for all of one.

One thread serves everybody. Of what a request names by the thousand some is looked up, or asked of the controller, in
each turn of the loop. Between two turns all connections have theirs. A short request is served at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Hashable
from typing import NoReturn, TypeAlias

import attrs

from isr_broker.core.messages import Millis

Work: TypeAlias = Generator[None, Millis, None]
"""Something long: it yields where others may have their turn, and is sent the time when it has its own."""


def _raises(error: Exception) -> NoReturn:
    raise error


@attrs.define(eq=False)
class Gate:
    """What follows a request on its connection, where it must not overtake it: closed while that is half done.

    `ends` is told when it is open again. It `is_abandoned` once nobody is there any more: the rest need not be done.
    `fails` is told of an error that the rest of it met: it is this request's alone, as it is where all is done at once.
    `owner` is the connection, which `holds` so many bytes until this request's answer was taken.
    """

    ends: Callable[[], None] = lambda: None
    fails: Callable[[Exception], None] = _raises
    owner: Hashable | None = None
    holds: Callable[[int], None] = lambda _: None
    is_closed: bool = False
    is_abandoned: bool = False

    def open(self) -> None:
        """All is done."""
        self.is_closed = False
        self.ends()


@attrs.define
class Turns:
    """What is half done, in the order in which it goes on, and what waits for it.

    `fails` is told of errors of what holds up nobody: it is then never answered.
    """

    waiting: deque[tuple[Work, Gate]] = attrs.field(factory=deque[tuple[Work, Gate]])
    fails: Callable[[Exception], None] = _raises

    def begin(self, work: Work, gate: Gate | None = None) -> None:
        """Do the first piece, and the others in later turns; until all are done the gate is closed."""
        try:
            next(work)
        except StopIteration:
            return
        gate = gate or Gate(fails=self.fails)
        gate.is_closed = True
        self.waiting.append((work, gate))

    def deadline(self) -> Millis | None:
        """When `tick` is next wanted."""
        return 0 if self.waiting else None

    def tick(self, now: Millis) -> None:
        """One piece of what has waited longest."""
        if self.waiting:
            work, gate = self.waiting.popleft()
            if gate.is_abandoned:
                work.close()
                return
            try:
                work.send(now)
            except StopIteration:
                gate.open()
            except Exception as error:
                gate.fails(error)
            else:
                self.waiting.append((work, gate))
