"""Controllers of Apache Kafka whose disks were formatted with lists of voters that differ, as docs/kraft.md says.

Without this the page could be right of a model alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import pytest
from tests.support.quorums import QuorumStatus, StaticQuorum, kafka_files, quorum_status

from isr_cluster.ports import HOST, free_ports
from isr_kafka.node import controller_settings, initial_controllers, new_id

pytestmark = [pytest.mark.kafka, pytest.mark.processes, pytest.mark.sockets, pytest.mark.slow]

PATIENCE = 120.0


@attrs.define(kw_only=True)
class FormattedQuorum(StaticQuorum):
    """Controllers with directory ids, each formatted with a list of its own; `lists`: the voters of each, or none."""

    lists: Mapping[int, Sequence[int]]
    directories: dict[int, str] = attrs.field(factory=dict[int, str])

    def kafka_command(self, node: int) -> list[str]:
        assert self.files is not None
        path = self.root / f"{node}.properties"
        settings = {
            **controller_settings(node, self.listens_at(node), self.data(node)),
            "controller.quorum.bootstrap.servers": ",".join(f"{HOST}:{port}" for port in self.ports.values()),
        }
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
        if not self.data(node).exists():
            self.files.format(path, self.cluster, *self.way_to_format(node))
        return self.files.command(path)

    def way_to_format(self, node: int) -> list[str]:
        voters = self.lists[node]
        if list(voters) == [node]:
            return ["--standalone"]
        for voter in self.ports:
            self.directories.setdefault(voter, new_id())
        listed = {voter: self.found_at(voter) for voter in voters}
        return ["--initial-controllers", initial_controllers(listed, self.directories)]

    def leaders(self) -> dict[int, QuorumStatus]:
        """What each node says that takes itself for the leader."""
        said = {node: quorum_status({node: self.found_at(node)}) for node in self.running}
        return {node: status for node, status in said.items() if status is not None}

    def awaits_leaders(self, nodes: set[int]) -> dict[int, QuorumStatus]:
        """What they say once these nodes take themselves for leaders; AssertionError if they do not in time."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            said = self.leaders()
            if set(said) == nodes:
                return said
            time.sleep(0.2)
        raise AssertionError(f"within {PATIENCE} s {nodes} did not lead, but {self.leaders()}")


@pytest.fixture
def formatted(tmp_path: Path) -> Iterator[Callable[[Mapping[int, Sequence[int]]], FormattedQuorum]]:
    """Start controllers of 4.4.0 that were formatted so."""
    started: list[FormattedQuorum] = []

    def start(lists: Mapping[int, Sequence[int]]) -> FormattedQuorum:
        nodes = sorted(lists)
        quorum = FormattedQuorum(
            root=tmp_path,
            ports=dict(zip(nodes, free_ports(len(nodes)), strict=True)),
            files=kafka_files("4.4.0"),
            ours=frozenset(),
            lists=lists,
        )
        started.append(quorum)
        for node in nodes:
            quorum.start(node)
        return quorum

    yield start
    for quorum in started:
        quorum.kill_all()


def test_two_nodes_that_were_formatted_standalone_both_lead(
    formatted: Callable[[Mapping[int, Sequence[int]]], FormattedQuorum],
) -> None:
    said = formatted({1: [1], 2: [2]}).awaits_leaders({1, 2})
    assert {status.epoch for status in said.values()} == {1}
    assert {node: list(status.ends) for node, status in said.items()} == {1: [1], 2: [2]}
    assert all(status.watermark > 0 for status in said.values())


def test_with_one_list_one_of_them_leads(
    formatted: Callable[[Mapping[int, Sequence[int]]], FormattedQuorum],
) -> None:
    quorum = formatted({1: [1, 2], 2: [1, 2]})
    leader = quorum.awaits_status(lambda status: status.watermark > 0, PATIENCE).leader
    (status,) = quorum.awaits_leaders({leader}).values()
    assert sorted(status.ends) == [1, 2]
