"""Requests that are long to serve are served a piece at a time, so that nobody else waits for all of one.

One thread serves everybody. Of what a request names by the thousand some is looked up, or asked of the controller, in
each turn of the loop. Between two turns all connections have theirs. A short request is served at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import TypeAlias

import attrs

from isr_broker.core.messages import Millis

Work: TypeAlias = Generator[None, Millis, None]
"""Something long: it yields where others may have their turn, and is sent the time when it has its own."""


@attrs.define
class Turns:
    """What is half done, in the order in which it goes on."""

    waiting: deque[Work] = attrs.field(factory=deque[Work])

    def begin(self, work: Work) -> None:
        """Do the first piece, and the others in later turns."""
        try:
            next(work)
        except StopIteration:
            return
        self.waiting.append(work)

    def deadline(self) -> Millis | None:
        """When `tick` is next wanted."""
        return 0 if self.waiting else None

    def tick(self, now: Millis) -> None:
        """One piece of what has waited longest."""
        if self.waiting:
            work = self.waiting.popleft()
            try:
                work.send(now)
            except StopIteration:
                return
            self.waiting.append(work)
