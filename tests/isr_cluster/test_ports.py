"""Ports that are asked for: without these, a broker that is killed and started again could find its port taken."""

from __future__ import annotations

import itertools
import multiprocessing
import socket
from contextlib import ExitStack

import pytest

from isr_cluster import ports
from isr_cluster.ports import HOST, LOWEST, free_ports, in_use

pytestmark = pytest.mark.sockets


def given_from(first: int) -> list[int]:
    """Two ports, where this one is the first to be tried."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ports, "_offsets", itertools.count(first - LOWEST))
        return free_ports(2)


def elsewhere(first: int) -> list[int]:
    """The same in another process."""
    with multiprocessing.get_context("spawn").Pool(1) as one:
        return one.apply(given_from, (first,))


def test_they_are_neighbours_and_none_that_the_system_chooses_by_itself() -> None:
    first, *others = free_ports(4)
    assert others == [first + 1, first + 2, first + 3]
    with ExitStack() as closing:
        chosen = [closing.enter_context(socket.create_server((HOST, 0))).getsockname()[1] for _ in range(100)]
    assert others[-1] < min(chosen)


@pytest.mark.processes
def test_none_is_in_use_or_given_to_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = free_ports(2)
    assert not any(map(in_use, mine))
    assert not {*elsewhere(mine[0]), *elsewhere(mine[1])} & {*mine}
    monkeypatch.setattr(ports, "_MOST_CLAIMS", 1)
    free_ports(1)
    assert elsewhere(mine[0]) == mine, "what was claimed longest ago is given back"
    with socket.create_server((HOST, mine[1])):
        assert in_use(mine[1])
        assert mine[1] not in elsewhere(mine[0])
