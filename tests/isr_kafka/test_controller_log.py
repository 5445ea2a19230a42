"""The log of a quorum of our controllers, as Apache Kafka's own tool decodes it.

Without this a record could be one that only our codec knows.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.isr_broker.test_controller_runtime import Controllers
from tests.isr_broker.test_voter_runtime import BUSY
from tests.support.quorums import kafka_tool

from isr_broker.storage.quorum_disk import FOLDER
from isr_broker.voter_runtime import VoterRuntime

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

_PAYLOAD = re.compile(r" payload: (\{.*\})$", re.MULTILINE)
EXPECTED = {
    "FEATURE_LEVEL_RECORD",
    "REGISTER_BROKER_RECORD",
    "BROKER_REGISTRATION_CHANGE_RECORD",
    "TOPIC_RECORD",
    "CONFIG_RECORD",
    "PARTITION_RECORD",
    "PARTITION_CHANGE_RECORD",
    "NO_OP_RECORD",
}


def test_kafka_decodes_every_record_of_our_controllers(tmp_path: Path) -> None:
    world = Controllers(BUSY, VoterRuntime)
    world.run(4_000)
    world.callers[13].gone = True
    world.run(20_000)
    leader = world.leader()
    assert leader is not None
    (tmp_path / FOLDER).mkdir()
    path = tmp_path / FOLDER / f"{0:020d}.log"
    path.write_bytes(world.runtimes[leader].files.log.contents())
    printed = kafka_tool("DumpLogSegments", ["--cluster-metadata-decoder", "--files", str(path)])
    kinds = Counter(json.loads(payload)["type"] for payload in _PAYLOAD.findall(printed))
    assert set(kinds) == EXPECTED
    assert "isvalid: false" not in printed
    assert "Could not deserialize" not in printed
    end = world.runtimes[leader].voter.log.end
    assert sum(kinds.values()) == end - printed.count("isControl: true"), "every record is decoded"
