"""`insync topics`: the topics of a running cluster, who leads each partition, and who is in sync."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import cast

from insync_cli import old_options as options
from insync_cli import terminal
from insync_cli.clusters import settings
from insync_cli.exits import Exit, UsageError, did_you_mean
from isr_cluster.admin import Admin, PartitionSeen, Refused

EXAMPLE = """\
insync topics --bootstrap 127.0.0.1:9092
insync topics --bootstrap 127.0.0.1:9092 --create orders --partitions 3 --replicas 3
insync topics --bootstrap 127.0.0.1:9092 --delete orders"""

PATIENCE = 10.0


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("topics", "The topics of a running cluster, through Kafka's own protocol.", EXAMPLE)
    p.add_argument("--bootstrap", required=True, metavar="HOST:PORT", help="any broker of the cluster")
    what = p.add_mutually_exclusive_group()
    what.add_argument("--create", metavar="NAME", help="create this topic, then show it")
    what.add_argument("--delete", metavar="NAME", help="delete this topic")
    what.add_argument("--topic", metavar="NAME", help="show only this one")
    p.add_argument(
        "--partitions", type=options.positive, metavar="N", help="of the new topic (default: num.partitions)"
    )
    p.add_argument(
        "--replicas", type=options.positive, metavar="N", help="of each partition (default: default.replication.factor)"
    )
    p.add_argument(
        "--config", action="append", default=[], metavar="NAME=VALUE", help="of the new topic, as min.insync.replicas=2"
    )
    p.add_json()
    return p.read(argv)


def run(given: Namespace) -> int:
    create, delete, only = (cast("str | None", n) for n in (given.create, given.delete, given.topic))
    if create is None and (given.partitions or given.replicas or given.config):
        raise UsageError("--partitions, --replicas and --config go with --create")
    config = dict(pair.split("=", 1) for pair in cast("list[str]", given.config) if "=" in pair)
    if len(config) != len(cast("list[str]", given.config)):
        raise UsageError("--config wants name=value")
    try:
        with Admin(settings.address(str(given.bootstrap), "--bootstrap"), PATIENCE) as admin:
            found = _done(admin, given, create, delete, only, config)
    except Refused as refused:
        raise UsageError(str(refused)) from None
    target = cast("str | None", given.json)
    terminal.write_json(target, {"schema": "insync/topics/1", "partitions": [_report(p) for p in found]})
    if target != "-":
        _show(found, plain=cast("bool", given.plain), deleted=delete)
    return Exit.HOLDS


def _done(
    admin: Admin, given: Namespace, create: str | None, delete: str | None, only: str | None, config: dict[str, str]
) -> list[PartitionSeen]:
    if delete is not None:
        admin.delete(delete)
        return [p for p in admin.partitions() if p.topic != delete]
    if create is None:
        found = admin.partitions()
        names = {p.topic for p in found}
        if only is not None and only not in names:
            raise UsageError(f"there is no topic '{only}'{did_you_mean(only, names)}")
        return [p for p in found if only in (None, p.topic)]
    partitions, replicas = (cast("int | None", n) or -1 for n in (given.partitions, given.replicas))
    admin.create(create, partitions, replicas, config)
    until = time.monotonic() + PATIENCE
    while not (found := [p for p in admin.partitions() if p.topic == create]) and time.monotonic() < until:
        time.sleep(0.05)
    return found


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


def _show(found: list[PartitionSeen], *, plain: bool, deleted: str | None) -> None:
    out = terminal.console(plain=plain)
    if deleted is not None:
        out.print(f"deleted {deleted}")
        return
    if not found:
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
        for p in found
    ]
    terminal.print_table(out, ("topic", "partition", "leader", "epoch", "replicas", "ISR", "ELR", "offline"), rows)
    topics, without = len({p.topic for p in found}), sum(p.leader is None for p in found)
    short = sum(len(p.isr) < len(p.replicas) for p in found)
    parts = terminal.count(len(found), "partition")
    lacking = f"{without} without a leader, {short} with an ISR that lacks replicas"
    out.print(f"{terminal.count(topics, 'topic')}, {parts}: {lacking}")
