"""Topics that are created because a client asked for them (AutoTopicCreationManager).

A name takes a client a few bytes, and every broker a log that is opened and flushed. So only so many are under way at a
time. The others are unknown until the client asks again, as it does of any topic that is not there yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

MOST_UNDER_WAY: Final = 100
"""Topics that one broker has asked the controller to create, and has not heard of."""


@attrs.define
class AutoCreation:
    """The topics that are being created for clients of one broker."""

    under_way: set[str] = attrs.field(factory=set[str])

    def begin(self, names: Iterable[str]) -> list[str]:
        """Which of some names are to be created now: those that are not under way, as far as there is room."""
        new_names: list[str] = []
        for name in dict.fromkeys(names):
            if len(self.under_way) >= MOST_UNDER_WAY:
                break
            if name not in self.under_way:
                self.under_way.add(name)
                new_names.append(name)
        return new_names

    def end(self, name: str) -> None:
        """The controller has answered, or has not."""
        self.under_way.discard(name)
