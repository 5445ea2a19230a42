"""Directory ids as a setting (kraft.version 1, KIP-853).

They tell a voter with an empty disk from the one that it was.
"""

from __future__ import annotations

from collections.abc import Mapping

from isr_check.family import Lines
from isr_lang import Value

SAFER: Mapping[str, Value] = {"dynamic": True}
FORMAT = (
    "format each voter with a directory id, and give a lost one to nobody again",
    "kafka-storage.sh format --cluster-id CLUSTER --config FILE --initial-controllers ID@HOST:PORT:DIRECTORY,...",
)


def ways_to_set(settings: Mapping[str, Value]) -> Lines:
    """How a running quorum is given these settings, as far as it has them."""
    return (FORMAT,) if settings.get("dynamic") else ()
