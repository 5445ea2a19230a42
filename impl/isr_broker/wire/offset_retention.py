"""Which groups have not been used for so long that what they have committed is forgotten (offsets.retention.minutes).

Kafka looks at each offset, with the time that stands beside it in the log. Here it is looked at each group: since when
this coordinator has seen neither a member of it nor a commit. So nothing is forgotten earlier than in Kafka, and where
the coordinator changes the time begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import attrs

from isr_broker.core.messages import Millis

MINUTE: Final[Millis] = 60_000


@attrs.define
class OffsetRetention:
    """Of one partition: `used_at` is when each group was last in use, `next_check` when it is looked at again."""

    retention_ms: Millis
    interval_ms: Millis
    next_check: Millis
    used_at: dict[str, Millis] = attrs.field(factory=dict[str, Millis])

    def uses(self, group: str, now: Millis) -> None:
        """A group has committed something."""
        self.used_at[group] = now

    def idle_groups(self, groups: Iterable[str], has_members: Callable[[str], bool], now: Millis) -> list[str]:
        """Those of the groups that have something committed which were not in use for so long, once in an interval."""
        if now < self.next_check:
            return []
        self.next_check = now + self.interval_ms
        self.used_at = {name: now if has_members(name) else self.used_at.get(name, now) for name in groups}
        return [name for name, at in self.used_at.items() if at + self.retention_ms <= now]
