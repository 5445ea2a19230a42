"""Differences between Kafka and the model that are known, each by the exact state in which it shows.

docs/kafka-classes.md tells them by letter. One that is recognised here is counted apart and is no finding; anything
that differs in one more place, or by another value, is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

Values = Mapping[str, object]
Place = tuple[str, object, object]
Explain: TypeAlias = Callable[[str, Values, str, Values, Sequence[Place]], str]
"""What is known of a difference, as `explain` says it."""


def explain(kind: str, before: Values, action: str, parameters: Values, places: Sequence[Place]) -> str:
    """What is known of a difference, in a few words; nothing if nothing is.

    `before` is the model's state before the step; `places` have the model's value and Kafka's after it.
    """
    if (kind, action) == ("inconsistent state", "leader_answers_fetch") and _same_position(before, parameters, places):
        return "D: a fetch from where the follower was before does not move the watermark"
    return ""


def _same_position(before: Values, parameters: Values, places: Sequence[Place]) -> bool:
    """Partition.updateFollowerFetchState: a fetch that tells the leader nothing new does not try to move the watermark.

    Kafka's watermark, and all that follows from it, is then exactly what it was.
    """
    leader, follower = cast("str", parameters["leader"]), cast("str", parameters["follower"])
    ends = cast("Values", cast("Values", before["follower_end"])[leader])
    watermark = cast("Values", before["high_watermark"])[leader]
    expected_values = {
        f"high_watermark[{leader}]": watermark,
        f"fetch_watermark[{follower}]": watermark,
        "acked": before["acked"],
        "committed": before["committed"],
    }
    return (
        ends[follower] == cast("Values", before["fetch_offset"])[follower]
        and f"high_watermark[{leader}]" in {place for place, _, _ in places}
        and all(place in expected_values and kafka == expected_values[place] for place, _, kafka in places)
    )
