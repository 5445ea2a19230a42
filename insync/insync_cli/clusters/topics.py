"""`insync topics`: the topics of a running cluster, who leads each partition, and who is in sync."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, terminal
from insync_cli.clusters.settings import address, pairs
from insync_cli.exits import Exit, UsageError, did_you_mean
from insync_cli.options import Usage, group, option, positive, repeated_option, required_option
from insync_cli.terminal import Output
from isr_cluster.admin import Admin, PartitionSeen, RequestRefused

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLE = """\
insync topics --bootstrap 127.0.0.1:9092
insync topics --bootstrap 127.0.0.1:9092 --create orders --partitions 3 --replicas 3
insync topics --bootstrap 127.0.0.1:9092 --delete orders"""

PATIENCE = 10.0


USAGE = Usage("topics", "The topics of a running cluster, through Kafka's own protocol.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    bootstrap: str = required_option("HOST:PORT", "any broker of the cluster", str)
    create: str | None = option("NAME", "create this topic, then show it", str, rival="what")
    delete: str | None = option("NAME", "delete this topic", str, rival="what")
    topic: str | None = option("NAME", "show only this one", str, rival="what")
    partitions: int | None = option("N", "of the new topic; without it, num.partitions", positive)
    replicas: int | None = option("N", "of each partition; without it, default.replication.factor", positive)
    config: tuple[str, ...] = repeated_option("NAME=VALUE", "of the new topic, as min.insync.replicas=2", str)
    output: Output = group(Output)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    if invocation.create is None and (invocation.partitions or invocation.replicas or invocation.config):
        raise UsageError("--partitions, --replicas and --config go with --create")
    config = pairs(invocation.config, "--config")
    try:
        with Admin(address(invocation.bootstrap, "--bootstrap"), PATIENCE) as admin:
            partitions = _change_topics(admin, invocation, config)
    except RequestRefused as refused:
        raise UsageError(str(refused)) from None
    invocation.output.write({"schema": "insync/topics/1", "partitions": [_report(p) for p in partitions]})
    if invocation.output.for_people:
        _show(invocation.output.console(), partitions, deleted_topic=invocation.delete)
    return Exit.HOLDS


def _change_topics(admin: Admin, invocation: Options, config: dict[str, str]) -> list[PartitionSeen]:
    """Create or delete the topic if asked to, and return the partitions to show."""
    if invocation.delete is not None:
        admin.delete(invocation.delete)
        return [p for p in admin.partitions() if p.topic != invocation.delete]
    if invocation.create is None:
        partitions, only = admin.partitions(), invocation.topic
        names = {p.topic for p in partitions}
        if only is not None and only not in names:
            raise UsageError(f"there is no topic '{only}'{did_you_mean(only, names)}")
        return [p for p in partitions if only in (None, p.topic)]
    admin.create(invocation.create, invocation.partitions or -1, invocation.replicas or -1, config)
    until = time.monotonic() + PATIENCE
    while (
        not (partitions := [p for p in admin.partitions() if p.topic == invocation.create]) and time.monotonic() < until
    ):
        time.sleep(0.05)
    return partitions


def _report(p: PartitionSeen) -> dict[str, object]:
    return {
        "topic": p.topic,
        "partition": p.number,
        "leader": p.leader,
        "leader_epoch": p.leader_epoch,
        "replicas": list(p.replicas),
        "isr": list(p.isr),
        "elr": None if p.elr is None else list(p.elr),
        "offline": list(p.offline),
    }


def _numbers(numbers: Iterable[int] | None) -> str:
    return "?" if numbers is None else " ".join(map(str, numbers)) or "-"


def _show(out: Console, partitions: list[PartitionSeen], *, deleted_topic: str | None) -> None:
    if deleted_topic is not None:
        out.print(f"deleted {deleted_topic}")
        return
    if not partitions:
        out.print("there are no topics")
        return
    rows = [
        (
            p.topic,
            str(p.number),
            "none" if p.leader is None else str(p.leader),
            str(p.leader_epoch),
            _numbers(p.replicas),
            _numbers(p.isr),
            _numbers(p.elr),
            _numbers(p.offline),
        )
        for p in partitions
    ]
    terminal.print_table(out, ("topic", "partition", "leader", "epoch", "replicas", "ISR", "ELR", "offline"), rows)
    topics, without = len({p.topic for p in partitions}), sum(p.leader is None for p in partitions)
    short = sum(len(p.isr) < len(p.replicas) for p in partitions)
    parts = terminal.count(len(partitions), "partition")
    lacking = f"{without} without a leader, {short} with an ISR that lacks replicas"
    out.print(f"{terminal.count(topics, 'topic')}, {parts}: {lacking}")
