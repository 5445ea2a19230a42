"""Requests about consumer groups: from the fields of Kafka's protocol to the coordinator, and back."""

from __future__ import annotations

from typing import Final

import attrs

from isr_broker import wire
from isr_broker.groups import Groups, Member, Offsets, Reply
from isr_broker.messages import BrokerId, Millis, Offset, TopicPartition
from isr_broker.runtime import Runtime
from isr_broker.wire import Answer, Fields, Request

COORDINATOR_NOT_AVAILABLE: Final = 15
NOT_COORDINATOR: Final = 16
_SERVED: Final = {
    wire.FIND_COORDINATOR,
    wire.JOIN_GROUP,
    wire.SYNC_GROUP,
    wire.HEARTBEAT,
    wire.LEAVE_GROUP,
    wire.OFFSET_COMMIT,
    wire.OFFSET_FETCH,
}


@attrs.define
class GroupRequests:
    """The handlers; `groups` only on the broker that is the coordinator."""

    runtime: Runtime
    groups: Groups | None = None

    @classmethod
    def of(cls, runtime: Runtime) -> GroupRequests:
        """The handlers of a broker that has started."""
        if runtime.controller is None:
            return cls(runtime)
        delay = runtime.settings.group_initial_rebalance_delay_ms
        return cls(runtime, Groups(Offsets.open(runtime.disk), delay))

    def serves(self, key: int) -> bool:
        """Whether an API is about groups."""
        return key in _SERVED

    def serve(self, request: Request, now: Millis, reply: Reply) -> None:
        """Answer a request, now or when the group is ready."""
        body = request.body
        if request.key == wire.FIND_COORDINATOR:
            reply(self._coordinator(body))
        elif self.groups is None:
            reply(_not_here(request))
        else:
            self._serve(self.groups, request, now, reply)

    def _serve(self, groups: Groups, request: Request, now: Millis, reply: Reply) -> None:
        body = request.body
        group, member = body.text("group_id"), body.text("member_id")
        generation = body.number("generation_id", body.number("generation_id_or_member_epoch"))
        match request.key:
            case wire.JOIN_GROUP:
                session = body.number("session_timeout")
                joining = Member(
                    identity=member,
                    protocols={p.text("name"): p.data("metadata") or b"" for p in body.all("protocols")},
                    session_ms=session,
                    rebalance_ms=body.number("rebalance_timeout", session),
                    heard=now,
                )
                groups.join(group, body.text("protocol_type"), joining, request.client or "client", now, reply)
            case wire.SYNC_GROUP:
                parts = {a.text("member_id"): a.data("assignment") or b"" for a in body.all("assignments")}
                groups.sync(group, member, generation, parts, now, reply)
            case wire.HEARTBEAT:
                reply({"error_code": groups.heartbeat(group, member, generation, now)})
            case wire.LEAVE_GROUP:
                leaving = [m.text("member_id") for m in body.all("members")] or [member]
                codes = [groups.leave(group, m, now) for m in leaving]
                members = [{"member_id": m, "error_code": c} for m, c in zip(leaving, codes, strict=True)]
                reply({"error_code": 0 if body.all("members") else codes[0], "members": members})
            case wire.OFFSET_COMMIT:
                reply(_commits(groups, body, group, member, generation, now))
            case _:
                reply(_fetches(groups, body, group))

    def _coordinator(self, body: Fields) -> Answer:
        """The broker at the controller's address, for whatever group (FindCoordinator)."""
        node = self.runtime.node
        at = next((b for b in node.brokers.values() if (b.host, b.port) == self.runtime.controller_at), None)
        is_group = body.number("key_type", 0) == 0
        found: Answer = {"error_code": COORDINATOR_NOT_AVAILABLE, "node_id": -1, "host": "", "port": -1}
        if at is not None and is_group:
            found = {"error_code": 0, "node_id": at.broker, "host": at.host, "port": at.port}
        keys = body.values.get("coordinator_keys")
        names = [k for k in keys if isinstance(k, str)] if isinstance(keys, list) else []
        return {**found, "coordinators": [{**found, "key": name} for name in names]}

    def coordinator(self) -> BrokerId | None:
        """Who is the coordinator, if this broker knows."""
        node_id = self._coordinator(Fields({}))["node_id"]
        return node_id if isinstance(node_id, int) and node_id >= 0 else None


def _not_here(request: Request) -> Answer:
    """NOT_COORDINATOR, wherever this version of the answer has room for it."""
    body, error = request.body, NOT_COORDINATOR
    topics: list[Answer] = []
    for topic in body.all("topics"):
        numbers = [p.number("partition_index") for p in topic.all("partitions")]
        partitions = [{"partition_index": n, "error_code": error} for n in numbers]
        topics.append({"name": topic.text("name"), "partitions": partitions})
    groups = [{"group_id": g.text("group_id"), "error_code": error} for g in body.all("groups")]
    topics = topics if request.key == wire.OFFSET_COMMIT else []
    return {"error_code": error, "topics": topics, "groups": groups, "generation_id": -1, "assignment": b""}


def _commits(groups: Groups, body: Fields, group: str, member: str, generation: int, now: Millis) -> Answer:
    new: dict[TopicPartition, tuple[Offset, str]] = {}
    for topic in body.all("topics"):
        for p in topic.all("partitions"):
            tp = TopicPartition(topic.text("name"), p.number("partition_index"))
            new[tp] = (p.number("committed_offset"), p.text("committed_metadata"))
    code = groups.commit(group, member, generation, new, now)
    topics = {tp.topic for tp in new}
    return {
        "topics": [
            {
                "name": name,
                "partitions": [{"partition_index": tp.partition, "error_code": code} for tp in new if tp.topic == name],
            }
            for name in sorted(topics)
        ]
    }


def _fetches(groups: Groups, body: Fields, group: str) -> Answer:
    """OffsetFetch: one group, or since version 8 several; without topics all that the group has committed."""
    answer: dict[str, object] = {"error_code": 0}
    answer["topics"] = _committed(groups, group, body)
    answer["groups"] = [
        {"group_id": g.text("group_id"), "error_code": 0, "topics": _committed(groups, g.text("group_id"), g)}
        for g in body.all("groups")
    ]
    return answer


def _committed(groups: Groups, group: str, asked: Fields) -> list[Answer]:
    known = {tp: said for (name, tp), said in groups.offsets.committed.items() if name == group}
    wanted = list(known)
    if asked.has("topics"):
        wanted = list[TopicPartition]()
        for topic in asked.all("topics"):
            numbers = topic.values.get("partition_indexes")
            items = numbers if isinstance(numbers, list) else []
            wanted += [TopicPartition(topic.text("name"), n) for n in items if isinstance(n, int)]
    topics: dict[str, list[Answer]] = {}
    for tp in wanted:
        offset, note = known.get(tp, (-1, ""))
        topics.setdefault(tp.topic, []).append(
            {"partition_index": tp.partition, "committed_offset": offset, "metadata": note, "error_code": 0}
        )
    return [{"name": name, "partitions": partitions} for name, partitions in topics.items()]
