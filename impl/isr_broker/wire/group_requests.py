"""Requests about consumer groups: from the fields of Kafka's protocol to the coordinator, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import attrs

from isr_broker.core.messages import (
    CreateTopic,
    Error,
    Millis,
    Offset,
    PartitionMetadata,
    TopicPartition,
)
from isr_broker.core.record_batch import BadBatch
from isr_broker.core.replica_state import Leading, Replica
from isr_broker.core.topics import Topics
from isr_broker.runtime import ClientAnswer, Runtime
from isr_broker.storage.offsets_topic import TOPIC, News, partition_of
from isr_broker.wire import protocol
from isr_broker.wire.committed_offsets import (
    COORDINATOR_NOT_AVAILABLE,
    NOT_COORDINATOR,
    CommittedOffsets,
    Then,
    batches_of,
)
from isr_broker.wire.decoder import LONGEST_TEXT
from isr_broker.wire.group_room import GroupRoom, growth
from isr_broker.wire.groups import STATE_NAMES, Group, Groups, Member, Reply
from isr_broker.wire.offset_retention import MINUTE, OffsetRetention
from isr_broker.wire.protocol import Answer, Fields, Request
from isr_broker.wire.turns import Work

COORDINATOR_LOAD_IN_PROGRESS: Final = 14
GROUP_SUBSCRIBED_TO_TOPIC: Final = 86
_CLASSIC: Final = "classic"
"""The one type of group that there is (KIP-848 has another)."""

_TELLS_UNKNOWN: Final = 6
"""Since this version DescribeGroups has an error for a group that is not there (KIP-1043)."""

_GROUPS, _TRANSACTIONS = 0, 1
"""CoordinatorType."""

_FORGOTTEN_AT_ONCE: Final = 20
"""Groups whose offsets are forgotten in one turn."""

INVALID_GROUP_ID: Final = 24
INVALID_SESSION_TIMEOUT: Final = 26

_NEEDS_ID: Final = 4
"""Since this version of JoinGroup a new member is told its id first (JoinGroupRequest.requiresKnownMemberId)."""

_OF_A_GROUP: Final = {
    protocol.JOIN_GROUP,
    protocol.SYNC_GROUP,
    protocol.HEARTBEAT,
    protocol.LEAVE_GROUP,
    protocol.OFFSET_DELETE,
}
"""APIs that the group with the empty name cannot be asked by."""

OF_MANY: Final = {
    protocol.FIND_COORDINATOR,
    protocol.DESCRIBE_GROUPS,
    protocol.OFFSET_FETCH,
    protocol.DELETE_GROUPS,
}
"""APIs that may name any number of groups."""

_AT_ONCE: Final = 1_000
"""Groups of which one request is served in one turn; each _LONG_NAME characters of a name count as one more."""
_LONG_NAME: Final = 1_000

_SERVED_APIS: Final = {
    *OF_MANY,
    protocol.LIST_GROUPS,
    protocol.JOIN_GROUP,
    protocol.SYNC_GROUP,
    protocol.HEARTBEAT,
    protocol.LEAVE_GROUP,
    protocol.OFFSET_COMMIT,
    protocol.OFFSET_DELETE,
}


@attrs.define
class CoordinatedGroups:
    """The groups of one partition of the topic, in one leader epoch; `idle` are those whose offsets are to go."""

    offsets: CommittedOffsets
    groups: Groups
    retention: OffsetRetention
    idle: list[str] = attrs.field(factory=list[str])

    def deadline(self) -> Millis | None:
        """When something of them is next due."""
        check = self.retention.next_check if self.offsets.committed and self.offsets.is_loaded else None
        times = (self.groups.deadline(), self.offsets.deadline(), 0 if self.idle else check)
        return min((at for at in times if at is not None), default=None)

    def give_up(self) -> None:
        """Another broker coordinates them from now on."""
        self.groups.give_up(NOT_COORDINATOR)
        self.offsets.given_up()


@attrs.define
class GroupRequests:
    """The handlers of one broker; `parts` are those of the topic's partitions that it leads and was asked about.

    `rooms` are for members and for what is committed, of all parts.
    """

    runtime: Runtime
    rooms: tuple[GroupRoom, GroupRoom] = attrs.field(init=False)
    parts: dict[TopicPartition, CoordinatedGroups] = attrs.field(factory=dict[TopicPartition, CoordinatedGroups])
    index: Topics = attrs.field(factory=Topics)

    def __attrs_post_init__(self) -> None:
        settings = self.runtime.settings
        most = settings.insync_groups_max
        self.rooms = (
            GroupRoom(most, settings.insync_groups_max_bytes),
            GroupRoom(most, settings.insync_offsets_max_bytes),
        )

    def serves(self, key: int) -> bool:
        """Whether an API is about groups."""
        return key in _SERVED_APIS

    def serve(self, request: Request, now: Millis, reply: Reply) -> None:
        """Answer a request, now or when the group is ready."""
        if request.key == protocol.LIST_GROUPS:
            reply(self._list_groups(request.body, now))
            return
        if (error := self._request_error(request)) != 0:
            reply(_not_here(request, error))
            return
        groups = self._groups_of(request.body.text("group_id"), now)
        if isinstance(groups, Groups):
            self._serve(groups, request, now, reply)
        elif request.key == protocol.HEARTBEAT and groups == COORDINATOR_LOAD_IN_PROGRESS:
            # Who is in the group is not known yet, and nobody is to join again for that.
            reply({"error_code": 0})
        else:
            reply(_not_here(request, groups))

    def serve_many(self, request: Request, now: Millis, reply: Reply) -> Work:
        """Answer a request of those in `OF_MANY`, which may name any number of groups."""
        body = request.body
        match request.key:
            case protocol.FIND_COORDINATOR:
                yield from self._coordinators(body, now, reply)
            case protocol.DESCRIBE_GROUPS:
                rows: list[Answer] = []
                for name in a_few_at_a_time(dict.fromkeys(body.texts("groups"))):
                    if name is None:
                        now = yield
                    else:
                        rows.append(self._describe_group(name, request.version, now))
                reply({"groups": rows})
            case protocol.DELETE_GROUPS:
                yield from self._deletes(body.texts("groups_names"), now, reply)
            case _:
                yield from self._fetches(body, now, reply)

    def _request_error(self, request: Request) -> int:
        """What is wrong with a request whichever groups there are, 0 if nothing is (GroupCoordinatorService)."""
        if request.key in _OF_A_GROUP and not request.body.text("group_id"):
            return INVALID_GROUP_ID
        settings, session = self.runtime.settings, request.body.number("session_timeout")
        low, high = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        return INVALID_SESSION_TIMEOUT if request.key == protocol.JOIN_GROUP and not low <= session <= high else 0

    def _list_groups(self, body: Fields, now: Millis) -> Answer:
        """ListGroups: the groups that this broker coordinates, with members or with committed offsets (KIP-518).

        While it reads which there are they are not all, and it says so (GroupCoordinator.handleListGroups).
        """
        self._drop_lost()
        led = [r for tp, r in self.runtime.node.replicas.items() if tp.topic == TOPIC and isinstance(r.role, Leading)]
        loading = COORDINATOR_LOAD_IN_PROGRESS in [self._load_groups(replica, now) for replica in led]
        states = {state.lower() for state in body.texts("states_filter")}
        kinds = {kind.lower() for kind in body.texts("types_filter")}
        rows: dict[str, Answer] = {}
        for part in self.parts.values():
            for name in {*part.groups.groups, *part.offsets.committed}:
                group = part.groups.groups.get(name, Group())
                state = STATE_NAMES[group.state]
                if (not states or state.lower() in states) and (not kinds or _CLASSIC in kinds):
                    rows[name] = {
                        "group_id": name,
                        "protocol_type": group.kind,
                        "group_state": state,
                        "group_type": _CLASSIC,
                    }
        listed = [said for _, said in sorted(rows.items())]
        return {"error_code": COORDINATOR_LOAD_IN_PROGRESS if loading else 0, "groups": listed}

    def _describe_group(self, name: str, version: int, now: Millis) -> Answer:
        """One group of DescribeGroups: one that is not there is Dead, and since version 6 GROUP_ID_NOT_FOUND, too."""
        groups = self._groups_of(name, now)
        nothing: Answer = {"group_id": name, "group_state": "", "protocol_type": "", "protocol_data": "", "members": []}
        if isinstance(groups, int):
            return {**nothing, "error_code": groups, "error_message": None}
        found = groups.describe_group(name)
        if found is not None:
            return {**found, "error_code": 0, "error_message": None}
        unknown = Error.GROUP_ID_NOT_FOUND.value if version >= _TELLS_UNKNOWN else 0
        why = f"Group {name} not found." if unknown else None
        return {**nothing, "group_state": "Dead", "error_code": unknown, "error_message": why}

    # Who coordinates

    def _partition_of(self, group: str) -> PartitionMetadata | None:
        """The partition of the topic to which a group belongs; None if there is no such topic yet."""
        there = self.index.of(self.runtime.node.partitions).by_name.get(TOPIC)
        return there[partition_of(group, len(there))] if there else None

    def _groups_of(self, group: str, now: Millis) -> Groups | int:
        """The groups among which this one is, or why they are not to be had here.

        A new leader reads what was committed from its log, once all of that is committed.
        """
        p = self._partition_of(group)
        replica = self.runtime.node.replicas.get(p.partition) if p is not None else None
        self._drop_lost()
        if replica is None or not isinstance(replica.role, Leading):
            return NOT_COORDINATOR
        return self._load_groups(replica, now)

    def _load_groups(self, replica: Replica, now: Millis) -> Groups | int:
        """The groups of a partition that this broker leads; it begins to read its log when first asked."""
        tp = replica.partition
        if tp not in self.parts:
            if replica.high_watermark < replica.log.end:
                return COORDINATOR_LOAD_IN_PROGRESS
            of_members, of_offsets = self.rooms
            offsets = CommittedOffsets.of(self.runtime, replica, of_offsets)
            settings = self.runtime.settings
            groups = Groups(
                settings.group_initial_rebalance_delay_ms,
                offsets.committed,
                settings.group_max_size,
                settings.message_max_bytes,
                room=of_members,
            )
            interval = settings.offsets_retention_check_interval_ms
            retention = OffsetRetention(settings.offsets_retention_minutes * MINUTE, interval, now + interval)
            try:
                offsets.tick(now)
            except (OSError, BadBatch) as error:
                offsets.given_up()
                self.runtime.take_offline(tp, str(error))
                return COORDINATOR_NOT_AVAILABLE
            self.parts[tp] = CoordinatedGroups(offsets, groups, retention)
        part = self.parts[tp]
        return part.groups if part.offsets.is_loaded else COORDINATOR_LOAD_IN_PROGRESS

    def _drop_lost(self) -> None:
        held = self.runtime.node.replicas
        for tp, part in list(self.parts.items()):
            replica = held.get(tp)
            if replica is None or not isinstance(replica.role, Leading) or replica.leader_epoch != part.offsets.epoch:
                del self.parts[tp]
                part.give_up()

    def _coordinators(self, body: Fields, now: Millis, reply: Reply) -> Work:
        """FindCoordinator: for one group, or since version 4 for several; the topic is created when first asked for."""
        kind = body.number("key_type", _GROUPS)
        # CoordinatorType.forId; that of share groups, type 2, is since version 6.
        error = COORDINATOR_NOT_AVAILABLE if kind in (_GROUPS, _TRANSACTIONS) else Error.INVALID_REQUEST.value
        is_group = kind == _GROUPS
        if is_group and self._partition_of("") is None:
            settings = self.runtime.settings
            make = CreateTopic(
                request=0,
                topic=TOPIC,
                partitions=settings.offsets_topic_num_partitions,
                replication_factor=settings.offsets_topic_replication_factor,
            )
            self.runtime.ask(lambda number: attrs.evolve(make, request=number), _nothing, now)
        rows: list[Answer] = []
        for name in a_few_at_a_time(body.texts("coordinator_keys")):
            if name is None:
                yield
            else:
                rows.append({**self._coordinator(name, is_group, error), "key": name})
        reply({**self._coordinator(body.text("key"), is_group, error), "coordinators": rows})

    def _coordinator(self, group: str, is_group: bool, error: int) -> Answer:
        p = self._partition_of(group) if is_group else None
        at = self.runtime.node.brokers.get(p.leader) if p is not None and p.leader is not None else None
        if at is None:
            return {"error_code": error, "node_id": -1, "host": "", "port": -1}
        return {"error_code": 0, "node_id": at.broker, "host": at.host, "port": at.port}

    # Time

    def deadline(self) -> Millis | None:
        """When `tick` is next wanted."""
        return min((at for part in self.parts.values() if (at := part.deadline()) is not None), default=None)

    def tick(self, now: Millis) -> None:
        """Whatever is due by now happens."""
        self._drop_lost()
        for tp, part in list(self.parts.items()):
            part.groups.tick(now)
            try:
                part.offsets.tick(now)
            except (OSError, BadBatch) as error:
                # The disk does not give back what was committed: who leads next has it read from the beginning.
                self.runtime.take_offline(tp, str(error))
                del self.parts[tp]
                part.give_up()
                continue
            self._forget_idle(part, now)

    def _forget_idle(self, part: CoordinatedGroups, now: Millis) -> None:
        """What groups have committed that nobody uses is forgotten, a few groups in a turn (cleanupExpiredOffsets)."""
        groups, committed = part.groups, part.offsets.committed
        if part.offsets.is_loaded:
            part.idle += part.retention.idle_groups(committed, lambda name: name in groups.groups, now)
        some, part.idle = part.idle[:_FORGOTTEN_AT_ONCE], part.idle[_FORGOTTEN_AT_ONCE:]
        for name in some:
            if name not in groups.groups:
                for news in batches_of(name, dict.fromkeys(committed.get(name, ()))):
                    self._writes(name, news, now, _no_matter)

    # Requests of members

    def _serve(self, groups: Groups, request: Request, now: Millis, reply: Reply) -> None:
        body = request.body
        group, member, instance = body.text("group_id"), body.text("member_id"), body.text("group_instance_id")
        generation = body.number("generation_id", body.number("generation_id_or_member_epoch"))
        match request.key:
            case protocol.JOIN_GROUP:
                session = body.number("session_timeout")
                joining = Member(
                    identity=member,
                    protocols={p.text("name"): p.data("metadata") or b"" for p in body.all("protocols")},
                    session_ms=session,
                    rebalance_ms=body.number("rebalance_timeout", session),
                    heard_at=now,
                    instance=instance,
                )
                client, needs_id = request.client or "client", request.version >= _NEEDS_ID
                groups.join(group, body.text("protocol_type"), joining, client, now, reply, needs_id)
            case protocol.SYNC_GROUP:
                parts = {a.text("member_id"): a.data("assignment") or b"" for a in body.all("assignments")}
                protocol_names = (body.text("protocol_type"), body.text("protocol_name"))
                groups.sync(group, member, generation, parts, now, reply, instance, protocol_names)
            case protocol.HEARTBEAT:
                reply({"error_code": groups.heartbeat(group, member, generation, now, instance)})
            case protocol.LEAVE_GROUP:
                leaving_members = [(m.text("member_id"), m.text("group_instance_id")) for m in body.all("members")]
                codes = groups.leave(group, leaving_members or [(member, "")], now)
                members = [
                    {"member_id": m, "group_instance_id": i or None, "error_code": code}
                    for (m, i), code in zip(leaving_members, codes, strict=False)
                ]
                reply({"error_code": 0 if leaving_members else codes[0], "members": members})
            case protocol.OFFSET_COMMIT:
                self._commits(groups, request, now, reply)
            case protocol.OFFSET_DELETE:
                self._deletes_offsets(groups, request, now, reply)
            case _:
                raise AssertionError(f"API {request.key} is no request of a member")

    def _commits(self, groups: Groups, request: Request, now: Millis, reply: Reply) -> None:
        """OffsetCommit: answered when the records are in every log that is in sync, like any acks=all."""
        body, group = request.body, request.body.text("group_id")
        new: dict[TopicPartition, tuple[Offset, str]] = {}
        for topic in body.all("topics"):
            for p in topic.all("partitions"):
                tp = TopicPartition(topic.text("name"), p.number("partition_index"))
                new[tp] = (p.number("committed_offset"), p.text("committed_metadata"))
        generation = body.number("generation_id_or_member_epoch")
        code = groups.may_commit(group, body.text("member_id"), generation, now, body.text("group_instance_id"))
        if code or not new:
            reply(_of_each(dict.fromkeys(new, code)))
            return
        refusals = {tp: error.value for tp, (_, note) in new.items() if (error := self._refusal(tp, note))}
        new = {tp: said for tp, said in new.items() if tp not in refusals}
        _, room = self.rooms
        more = max(growth(groups.committed, group, new), 0)
        if not new or not room.has(group, more):
            reply(_of_each({**refusals, **dict.fromkeys(new, Error.INVALID_COMMIT_OFFSET_SIZE.value)}))
            return
        # What is on its way counts, too: there may be much of it.
        room.reservations += more

        def send_reply(code: int) -> None:
            room.reservations -= more
            if not code:
                self._uses(group, now)
            reply(_of_each({**refusals, **dict.fromkeys(new, code)}))

        self._writes(group, dict(new), now, send_reply)

    def _uses(self, group: str, now: Millis) -> None:
        where = self._partition_of(group)
        part = None if where is None else self.parts.get(where.partition)
        if part is not None:
            part.retention.uses(group, now)

    def _writes(self, group: str, new: News, now: Millis, then: Then) -> None:
        """Write what a group has committed, or has no more; `then` gets the error code, and only then it counts."""
        where = self._partition_of(group)
        part = None if where is None else self.parts.get(where.partition)
        if part is None:
            then(COORDINATOR_NOT_AVAILABLE)
        else:
            part.offsets.write(group, new, now, then)

    def _deletes(self, names: Sequence[str], now: Millis, reply: Reply) -> Work:
        """DeleteGroups: what groups without members have committed is forgotten (KIP-229)."""
        codes: dict[str, int] = {}
        expected = len(set(names))

        def collect_code(name: str, code: int) -> None:
            codes[name] = code
            if len(codes) == expected:
                reply({"results": [{"group_id": group, "error_code": code} for group, code in codes.items()]})

        if not names:
            reply({"results": []})
        for name in a_few_at_a_time(dict.fromkeys(names)):
            if name is None:
                now = yield
                continue
            groups = self._groups_of(name, now)
            code = groups if isinstance(groups, int) else groups.may_be_deleted(name)
            if code or isinstance(groups, int):
                collect_code(name, code)
                continue
            gone = dict.fromkeys(groups.committed.get(name, ()))
            if not gone:
                collect_code(name, 0)
                continue
            self._writes(name, gone, now, partial(collect_code, name))

    def _deletes_offsets(self, groups: Groups, request: Request, now: Millis, reply: Reply) -> None:
        """OffsetDelete: of topics that no member of the group reads (KIP-496; OffsetMetadataManager.deleteOffsets)."""
        group = request.body.text("group_id")
        code = groups.may_lose_offsets(group)
        if code:
            reply({"error_code": code, "topics": []})
            return
        reads = groups.reads(group, {topic.text("name") for topic in request.body.all("topics")})
        reads_by_partition = {
            TopicPartition(topic.text("name"), p.number("partition_index")): topic.text("name") in reads
            for topic in request.body.all("topics")
            for p in topic.all("partitions")
        }
        codes = {tp: GROUP_SUBSCRIBED_TO_TOPIC if read else 0 for tp, read in reads_by_partition.items()}
        codes |= {tp: _UNKNOWN_TOPIC for tp in reads_by_partition if tp not in self.runtime.node.partitions}
        known = groups.committed.get(group, {})
        deleted_offsets = dict.fromkeys(tp for tp, code in codes.items() if not code and tp in known)

        def send_reply(code: int) -> None:
            of_each = _of_each({**codes, **dict.fromkeys(deleted_offsets, 0)})
            reply({"error_code": code, "topics": [] if code else of_each["topics"]})

        if deleted_offsets:
            self._writes(group, deleted_offsets, now, send_reply)
        else:
            send_reply(0)

    def _fetches(self, body: Fields, now: Millis, reply: Reply) -> Work:
        """OffsetFetch: one group, or since version 8 several; without topics all that the group has committed."""

        def fetched(name: str, fields: Fields) -> Answer:
            groups = self._groups_of(name, now)
            code = groups if isinstance(groups, int) else 0
            topics = _committed(groups if isinstance(groups, Groups) else None, name, fields, code)
            return {"group_id": name, "error_code": code, "topics": topics}

        several = {g.text("group_id"): g for g in body.all("groups")}
        rows: list[Answer] = []
        for name in a_few_at_a_time(several):
            if name is None:
                now = yield
            else:
                rows.append(fetched(name, several[name]))
        reply({"groups": rows} if several else fetched(body.text("group_id"), body))

    def _refusal(self, tp: TopicPartition, note: str) -> Error | None:
        """Why the offset of a partition cannot be committed (KafkaApis.handleOffsetCommitRequest)."""
        if tp not in self.runtime.node.partitions:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        longest = self.runtime.settings.offset_metadata_max_bytes
        is_long = len(note) > longest or len(note.encode()) > LONGEST_TEXT
        return Error.OFFSET_METADATA_TOO_LARGE if is_long else None


_UNKNOWN_TOPIC: Final = Error.UNKNOWN_TOPIC_OR_PARTITION.value


def a_few_at_a_time(names: Iterable[str]) -> Iterator[str | None]:
    """The names, and None where others may have their turn."""
    cost = 0
    for name in names:
        cost += 1 + len(name) // _LONG_NAME
        if cost > _AT_ONCE:
            cost = 0
            yield None
        yield name


def _nothing(answer: ClientAnswer, records: bytes) -> None:
    """Nobody waits."""


def _no_matter(code: int) -> None:
    """What is not written now is written at the next check."""


def _not_here(request: Request, error: int) -> Answer:
    """An error, wherever this version of the answer has room for it."""
    body = request.body
    topics: list[Answer] = []
    for topic in body.all("topics"):
        numbers = [p.number("partition_index") for p in topic.all("partitions")]
        partitions = [{"partition_index": n, "error_code": error} for n in numbers]
        topics.append({"name": topic.text("name"), "partitions": partitions})
    topics = topics if request.key == protocol.OFFSET_COMMIT else []
    member = body.text("member_id")
    return {"error_code": error, "topics": topics, "generation_id": -1, "assignment": b"", "member_id": member}


def _of_each(codes: Mapping[TopicPartition, int]) -> Answer:
    """An error code for every partition."""
    topics: dict[str, list[Answer]] = {}
    for tp, code in codes.items():
        topics.setdefault(tp.topic, []).append({"partition_index": tp.partition, "error_code": code})
    return {"topics": [{"name": name, "partitions": partitions} for name, partitions in sorted(topics.items())]}


def _committed(groups: Groups | None, group: str, fields: Fields, error: int) -> list[Answer]:
    offsets = groups.committed.get(group, {}) if groups is not None else {}
    requested_partitions = list(offsets)
    if fields.has("topics"):
        requested_partitions = list[TopicPartition]()
        for topic in fields.all("topics"):
            numbers = topic.values.get("partition_indexes")
            items = numbers if isinstance(numbers, list) else []
            requested_partitions += [TopicPartition(topic.text("name"), n) for n in items if isinstance(n, int)]
    topics: dict[str, list[Answer]] = {}
    for tp in requested_partitions:
        offset, note = offsets.get(tp, (-1, ""))
        topics.setdefault(tp.topic, []).append(
            {"partition_index": tp.partition, "committed_offset": offset, "metadata": note, "error_code": error}
        )
    return [{"name": name, "partitions": partitions} for name, partitions in topics.items()]
