"""Requests that are sent before it is their turn, so that the system works while an answer is compared."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from isr_broker.snapshot import Json
from isr_conform.sut_client import SutClient
from isr_conform.value_json import JsonObject

Request = tuple[str, JsonObject]
CHANGES: Final = frozenset({"reset", "step"})
"""The requests after which a system is in another state."""


class ReadAhead:
    """A client of a system to which requests are sent that are expected to be asked.

    Whoever asks something else than expected gets the same answers as without any of this: the system is reset, and
    brought to where it was asked last. `surprises` counts how often.
    """

    def __init__(self, client: SutClient) -> None:
        self._client = client
        self._expected: deque[Request] = deque()
        self._changes: list[Request] = []
        self.surprises = 0

    @property
    def request_count(self) -> int:
        """Requests that were sent."""
        return self._client.request_count

    def expect(self, requests: Iterable[Request], most_bytes: int) -> None:
        """Send the first of these requests, which are to be asked later, up to so many bytes."""
        sent = 0
        for do, more in requests:
            sent += self._client.send(do, **more)
            self._expected.append((do, more))
            if sent >= most_bytes:
                return

    def ask(self, do: str, **more: Json) -> JsonObject:
        """As in SutClient."""
        self.send(do, **more)
        return self.receive()

    def send(self, do: str, **more: Json) -> int:
        """As in SutClient."""
        request = do, more
        if self._expected and self._expected[0] != request:
            self.take_back()
        if do == "reset":
            self._changes.clear()
        if do in CHANGES:
            self._changes.append(request)
        if self._expected:
            self._expected.popleft()
            return 0
        return self._client.send(do, **more)

    def receive(self) -> JsonObject:
        """As in SutClient."""
        return self._client.receive()

    def take_back(self) -> None:
        """Expect nothing any more; the system is where it was asked last."""
        self.surprises += 1
        if not self._expected:
            return
        while self._expected:
            self._expected.popleft()
            self._client.receive()
        for do, more in self._changes:
            self._client.ask(do, **more)
