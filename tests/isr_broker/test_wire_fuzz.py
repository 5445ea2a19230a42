"""A minute of random requests against three processes, with somebody beside them who writes.

`tests.support.wire_fuzz` says what they are. Without it a request that nobody thought of could take a broker's memory,
or hold up everybody else.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.support.wire_fuzz import APIS, Requests, campaign

from isr_broker.wire import protocol
from isr_broker.wire.decoder import BadFrame


def test_random_requests_are_of_every_api_of_clients_and_most_of_them_are_read() -> None:
    requests, keys, unread = Requests(Random(1)), set[int](), 0
    for _ in range(300):
        key, frame = requests.frame()
        keys.add(key)
        try:
            protocol.parse(frame[4:])
        except BadFrame:
            unread += 1
    assert keys == set(APIS)
    assert 0 < unread < 100


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.sockets
def test_random_requests_hold_up_nobody_and_keep_no_memory(tmp_path: Path) -> None:
    figures = campaign(60, 1, tmp_path)
    print("\n".join(figures.lines()))
    assert figures.ended == []
    assert figures.refused == 0
    assert figures.writes > 0
    assert sum(figures.frames.values()) > 100
    assert figures.processor < 1, "of a broker's processor, during one write"
    assert figures.peak < figures.before + 400_000_000
    assert figures.after < figures.before + 100_000_000
