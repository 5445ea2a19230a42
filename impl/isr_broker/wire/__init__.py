"""Kafka's wire protocol, on both ends of a connection.

Reading order: `decoder`, `encoder`, `protocol` (frames by Kafka's schemas, and the versions that are served),
`cluster_ids` (of which cluster a request is),
`leader_hints` (who leads, beside an error), `metadata_records` (as Kafka's controllers have them in their log),
`control_records` (Raft's own in it), `controller_records` (what a controller of ours decides, in those).

- What a broker is asked: `requests` (picks the module), `produce_requests`,
  `fetch_requests` with `fetch_sessions` and `fetch_questions`,
  `admin_host` (who answers admins), `admin_requests` with `admin_refusals` and `auto_creation`,
  `reassignment_requests`, `cluster_requests`,
  `group_requests` with `groups`, `group_state`, `group_room`, `committed_offsets` and `offset_retention`,
  `broker_requests` (of brokers to the controller), `epoch_requests`, `offset_requests`. What is long is served in
  `turns`.
- What voters of the metadata quorum ask each other: `quorum_requests`, `quorum_channel` (one conversation).
- What brokers of Apache Kafka ask controllers: `kafka_brokers`.
- What a broker asks: `fetcher` (of a leader), `controller_channels` (of the controller).
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import cast


def _import_codec() -> None:
    """Import the codec's types without hypothesis, which they bring along wherever it is installed.

    It is slow to import, and its tables of characters would become a folder `.hypothesis` where somebody stands.
    Whoever has imported it himself keeps it.
    """
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    if "hypothesis" in modules:
        return
    modules["hypothesis"] = None
    try:
        importlib.import_module("kio.static.primitive")
    finally:
        del modules["hypothesis"]


_import_codec()
