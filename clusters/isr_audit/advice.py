"""A change of settings as steps that somebody can follow: what to type, at which level, in which order, and when not.

The order is chosen so that nothing is refused or lost on the way: replicas before the minimum that counts them, and a
larger minimum before eligible leader replicas, with which raising it has a known bug (docs/raise-min-insync.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from isr_audit.bugs import bugs
from isr_audit.cluster import FLUSH, MIN_INSYNC, UNCLEAN, Cluster, Partition, Release, Topic
from isr_audit.releases import TODAY, Running

if TYPE_CHECKING:
    from isr_audit.audit import Change, Row

ADDRESS: Final = "HOST:9092"
ZOOKEEPER_ADDRESS: Final = "HOST:2181"
TOPICS_ASK_BROKERS: Final[Release] = (2, 3)
CONFIGS_ASK_BROKERS: Final[Release] = (2, 5)
REASSIGNMENT_ASKS_BROKERS: Final[Release] = (2, 6)
"""From which release on a tool takes --bootstrap-server for topics (read in 2.1.1, 2.4.1, 2.5.0 and 2.6.0)."""
RAISE_BUG: Final = "raised-min-insync"
REASSIGNMENT_FILE: Final = "more-replicas.json"
BROKERS_OWN: Final = "not of single brokers: with eligible leader replicas Kafka refuses those"
"""ConfigurationControlManager: "Broker-level min.insync.replicas cannot be altered while ELR is enabled."."""


@attrs.frozen
class AdviceStep:
    """`says`: what to do, and when not; `commands`: what to type, none where no command does it. `file`: what a file
    of this step has in it, as JSON, "" where there is none."""

    says: str
    commands: tuple[str, ...] = ()
    file: str = ""


@attrs.frozen
class Tools:
    """How Kafka's tools reach the cluster. `bootstrap`: HOST:PORT; `release`: None where it was not told."""

    bootstrap: str = ADDRESS
    release: Release | None = None

    def configs(self, topic: str, setting: str) -> str:
        where = self._where(CONFIGS_ASK_BROKERS)
        return f"kafka-configs.sh {where} --alter --entity-type topics --entity-name {topic} --add-config {setting}"

    def under_replicated(self) -> str:
        return f"kafka-topics.sh {self._where(TOPICS_ASK_BROKERS)} --describe --under-replicated-partitions"

    def default(self, setting: str) -> str:
        """The setting of all brokers that have none of their own."""
        where = self._where(CONFIGS_ASK_BROKERS)
        return f"kafka-configs.sh {where} --alter --entity-type brokers --entity-default --add-config {setting}"

    def reassignment(self, action: str, file: str = REASSIGNMENT_FILE) -> str:
        where = self._where(REASSIGNMENT_ASKS_BROKERS)
        return f"kafka-reassign-partitions.sh {where} --reassignment-json-file {file} --{action}"

    def under_way(self) -> str:
        """Which reassignments go on (since 2.6)."""
        return f"kafka-reassign-partitions.sh --bootstrap-server {self.bootstrap} --list"

    def election(self, kind: str) -> str:
        """Of all partitions; `kind` is preferred or unclean (since 2.4)."""
        whose = f"--election-type {kind} --all-topic-partitions"
        return f"kafka-leader-election.sh --bootstrap-server {self.bootstrap} {whose}"

    def feature(self, level: str) -> str:
        return f"kafka-features.sh --bootstrap-server {self.bootstrap} upgrade --feature {level}"

    def _where(self, since: Release) -> str:
        if self.release is not None and self.release[:2] < since:
            return f"--zookeeper {ZOOKEEPER_ADDRESS}"
        return f"--bootstrap-server {self.bootstrap}"


def steps_of(row: Row, change: Change, cluster: Cluster, runs: Running, bootstrap: str = ADDRESS) -> list[AdviceStep]:
    """What to do, in order, for the topics of a row to be as the change says."""
    tools = Tools(bootstrap, runs.release)
    before, after = row.kind, change.to
    steps: list[AdviceStep] = []
    if after.settings.replicas > before.settings.replicas:
        steps += _more_replicas(row.topics, after.settings.replicas, cluster, tools)
    if before.settings.unclean and not after.settings.unclean:
        steps.append(_setting_step(row.topics, UNCLEAN, "false", tools, "it holds at once"))
    if after.settings.min_insync > before.settings.min_insync:
        steps += _raised_minimum(row, after.settings.min_insync, runs, tools)
    if after.flushed and not before.flushed:
        steps.append(_setting_step(row.topics, FLUSH, "1", tools, "try first what it costs"))
    if after.design != before.design:
        steps += _newer(change, tools)
    if after.in_rack < before.in_rack:
        steps.append(AdviceStep(f"Reassign the partitions: {change.settings[0]}", (tools.reassignment("execute"),)))
    return steps


def _setting_step(topics: Sequence[Topic], setting: str, value: str, tools: Tools, why: str) -> AdviceStep:
    """Set it of each topic, where its own value wins over all others."""
    return AdviceStep(
        f"Set {setting}={value} of the topic{'s' if topics[1:] else ''} ({why})",
        tuple(setting_command(t, setting, value, tools) for t in topics),
    )


def setting_command(topic: Topic, setting: str, value: str, tools: Tools) -> str:
    """What sets it of the topic, in Strimzi's resource where there is one."""
    if topic.resource:
        patch = json.dumps({"spec": {"config": {setting: int(value) if value.isdecimal() else value == "true"}}})
        return f"kubectl patch kafkatopic {topic.resource} --type merge -p '{patch}'"
    return tools.configs(topic.name, f"{setting}={value}")


def _raised_minimum(row: Row, minimum: int, runs: Running, tools: Tools) -> Iterator[AdviceStep]:
    lagging = [p.name for t in row.topics for p in t.partitions if not p.whole]
    if lagging:
        more = f" and {len(lagging) - 1:,} more" if lagging[1:] else ""
        yield AdviceStep(
            f"NOT NOW: wait until all replicas are in sync and this prints nothing ({lagging[0]}{more} is not)",
            (tools.under_replicated(),),
        )
    level = BROKERS_OWN if TODAY in (runs.design, *runs.also) else "whose own value wins over the brokers'"
    step = _setting_step(row.topics, MIN_INSYNC, str(minimum), tools, level)
    if any(bug.name == RAISE_BUG and bug.applies(runs) for bug in bugs()):
        caution = (
            f"{RAISE_BUG}: raise it only while all replicas are in sync, and restart no broker until the leaders have "
            "the new value (docs/raise-min-insync.md)"
        )
        step = attrs.evolve(step, says=f"{step.says}. This release has the bug {caution}")
    yield step


def _newer(change: Change, tools: Tools) -> Iterator[AdviceStep]:
    for setting in change.settings:
        if setting.startswith("Kafka "):
            yield AdviceStep(f"Upgrade to {setting} or later, the first release of which it is known that it helps")
        if setting.startswith("eligible.leader.replicas.version"):
            says = "Turn eligible leader replicas on, once all brokers run that release and all else is set"
            yield AdviceStep(says, (tools.feature(setting),))


def _more_replicas(topics: Sequence[Topic], number: int, cluster: Cluster, tools: Tools) -> Iterator[AdviceStep]:
    assignment = wider_assignment(topics, number, cluster)
    if assignment is None:
        known = len(cluster.broker_ids)
        yield AdviceStep(
            f"Reassign each partition to {number} brokers ({known} {'was' if known == 1 else 'were'} told, so no file "
            f"can be written here), and wait until that is complete",
            (tools.reassignment("execute"), tools.reassignment("verify")),
        )
        return
    yield AdviceStep(
        f"Give each partition {number} replicas by {REASSIGNMENT_FILE}, and wait until --verify says it is complete",
        (tools.reassignment("execute"), tools.reassignment("verify")),
        json.dumps(assignment, separators=(",", ":")),
    )


def wider_assignment(topics: Sequence[Topic], number: int, cluster: Cluster) -> Mapping[str, object] | None:
    """The JSON of kafka-reassign-partitions.sh with more replicas; None where too few brokers, or partitions, are told.

    Those that are there stay in their order. Who is added holds least, in a rack that has none of the partition.
    """
    ids = cluster.living if cluster.living is not None else cluster.broker_ids
    if len(ids) < number or any(not t.partitions or t.gap for t in topics):
        return None
    load = {b: sum(b in p.replicas for p in cluster.partitions) for b in ids}
    entries = [
        {"topic": p.topic, "partition": p.number, "replicas": _wider(p, number, load, cluster.racks)}
        for t in topics
        for p in t.partitions
    ]
    return {"version": 1, "partitions": entries}


def _wider(p: Partition, number: int, load: dict[int, int], racks: Mapping[int, str]) -> list[int]:
    replicas = list(p.replicas)
    while len(replicas) < number:
        here = [racks.get(r, "") for r in replicas]
        candidates = [b for b in load if b not in replicas]
        best = min(candidates, key=lambda b: (here.count(racks.get(b, "")) if racks else 0, load[b], b))
        load[best] += 1
        replicas.append(best)
    return replicas
