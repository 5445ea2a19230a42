"""The texts in which Kafka's own tools describe a cluster, recognised by what a line looks like.

    kafka-topics.sh --describe        Topic: t  PartitionCount: 2  ReplicationFactor: 3  Configs: min.insync.replicas=2
                                          Topic: t  Partition: 0  Leader: 1  Replicas: 1,2,3  Isr: 1,2  Elr: 3
    kafka-configs.sh --describe       Dynamic configs for topic t are:
                                        min.insync.replicas=2 sensitive=false synonyms={...}
    kafka-features.sh describe        Feature: metadata.version  ...  FinalizedVersionLevel: 4.1-IV1  Epoch: 7
    server.properties                 min.insync.replicas=2
    kafka-log-dirs.sh --describe      {"version":1,"brokers":[{"broker":1,"logDirs":[{"partitions":[...
    kafka-metadata-quorum.sh          LeaderId: 1
    grep of several files             /etc/kafka/1.properties:min.insync.replicas=2
    the environment of a container    KAFKA_MIN_INSYNC_REPLICAS=2

A file may hold several of these one after the other, quoted with `>` or wrapped by a terminal (`topic_lines`). What is
none of them is passed over. A line that speaks of partitions or settings and is not understood is a note.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from isr_audit.cluster import (
    DECISIVE,
    OF_BROKER,
    ONE_SNAPSHOT,
    Cluster,
    Contradiction,
    Partition,
    Topic,
    merge_partitions,
    merge_topics,
    number_of,
)
from isr_audit.deployments import VARIABLE, read_deployment, setting_name
from isr_audit.json_texts import Plan, on_one_line, plan_of
from isr_audit.properties import plain_properties
from isr_audit.topic_lines import SpokenLine, speaks_of_topics, spoken_lines

_FEATURE: Final = re.compile(r"^\s*Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)")
_HEADING: Final = re.compile(
    r"^\s*(?:Dynamic|All|Default) configs for (topic|brokers|broker) ?(\S*?)(?: in the cluster)? are:"
)
_OLD_HEADING: Final = re.compile(r"^\s*Configs for (topic|broker) '([^']+)' are (\S*)")
_ENTRY: Final = re.compile(r"^\s*([a-z][\w.-]*)=(.*?) sensitive=")
_GREP_LINE: Final = re.compile(
    r"^\s*([^\s:=,{}\"]*[./][^\s:=,{}\"]*):(?:\d+:)?\s*([a-z][\w-]*(?:\.[\w-]+)+)\s*=\s*(.*?)\s*$"
)
"""A line that grep found in a file: its name, perhaps a number, and the setting."""
_QUORUM: Final = re.compile(r"^\s*(?:LeaderEpoch|CurrentVoters|MaxFollowerLag):|^NodeId\s.*\bLogEndOffset\b")
_VOTERS: Final = re.compile(r"^\s*CurrentVoters:\s*\[(.*)\]")
_VOTER: Final = re.compile(r'(?:^|[{,]\s*"id":|,)\s*(\d{1,9})(?=\s*(?:,|\}|$))')
_CUT_ENTRY: Final = re.compile(r"^\s+([a-z][\w.-]*)=")
_PROPERTY: Final = re.compile(r"^([a-z][\w-]*(?:\.[\w-]+)+)\s*[=:]\s*(.*?)\s*$")
_OF_A_BROKER: Final = frozenset(
    (
        *("broker.id", "node.id", "process.roles", "zookeeper.connect", "controller.quorum.voters", "log.dirs"),
        *("controller.quorum.bootstrap.servers", "broker.rack", "default.replication.factor"),
        *(*OF_BROKER.values(), "inter.broker.protocol.version"),
    )
)
"""One of these tells a server.properties from any other file of properties."""
_IDS: Final = ("node.id", "broker.id")
NO_LEADER: Final = ("none", "-1", "n/a")
"""What stands for no leader, in any case of letters: Kafka's tools print `none`, long ago `-1`."""
NO_ELR: Final = "N/A"
_NAME: Final = re.compile(r"\S+")
_IDS_TEXT: Final = re.compile(r"\d{1,10}(?: ?, ?\d{1,10})*", re.ASCII)
_LIST_COLUMNS: Final = ("Adding Replicas", "Removing Replicas", "Observers", "Offline")
_COLUMNS: Final = frozenset(
    (
        *("Topic", "TopicId", "PartitionCount", "ReplicationFactor", "Configs", "MarkedForDeletion"),
        *("Partition", "Leader", "Replicas", "Isr", "Elr", "LastKnownElr", "LiveObservers", *_LIST_COLUMNS),
    )
)


@attrs.define
class _Reader:
    """What the lines so far have told. `about`: whom the entries that follow are about. `remarks`: of each thing that
    was read otherwise than it stands there, the lines; `losses`: the same of what may be a partition and was not read.
    `single`: settings that were told one by one, by the file or the environment that has them.
    """

    source: str
    topics: dict[str, Topic] = attrs.field(factory=dict[str, Topic])
    partitions: dict[tuple[str, int], Partition] = attrs.field(factory=dict[tuple[str, int], Partition])
    brokers: dict[str, dict[str, str]] = attrs.field(factory=dict[str, dict[str, str]])
    dynamic: dict[str, dict[str, str]] = attrs.field(factory=dict[str, dict[str, str]])
    defaults: dict[str, str] = attrs.field(factory=dict[str, str])
    features: dict[str, str] = attrs.field(factory=dict[str, str])
    about: tuple[str, str] = ("", "")
    remarks: dict[str, list[int]] = attrs.field(factory=dict[str, list[int]])
    losses: dict[str, list[int]] = attrs.field(factory=dict[str, list[int]])
    single: dict[str, dict[str, str]] = attrs.field(factory=dict[str, dict[str, str]])
    plans: list[Plan] = attrs.field(factory=list[Plan])
    has_quorum: bool = False
    voters: frozenset[int] | None = None

    def take(self, line: SpokenLine) -> None:
        if self.understands(line):
            if line.is_quoted:
                self.remark('read without the ">", or the text, before it', line)
        elif line.is_rest or speaks_of_topics(line.text):
            self.lose("not understood, and may tell of partitions", line)

    def understands(self, line: SpokenLine) -> bool:
        text = line.text
        if text.startswith('{"'):
            self.take_json(line)
        elif _QUORUM.match(text):
            self.has_quorum = True
            if voters := _VOTERS.match(text):
                self.voters = frozenset(map(int, _VOTER.findall(voters[1])))
        elif grep_line := _GREP_LINE.match(text):
            self.take_single(grep_line[1], grep_line[2], grep_line[3], line)
        elif variable := VARIABLE.match(text):
            self.take_single(self.source, setting_name(variable[1]), variable[2].strip("\"'"), line)
        elif feature := _FEATURE.match(text):
            self.features[feature[1]] = self.one_value(self.features, feature[1], feature[2], line)
        elif line.fields:
            self.take_topic(line, line.fields)
        elif heading := _HEADING.match(text):
            self.about = (heading[1], heading[2])
        elif old := _OLD_HEADING.match(text):
            self.about = (old[1], old[2])
            for name, value in pairs_in(old[3]):
                self.take_setting(name, value, line)
        elif entry := _ENTRY.match(text):
            self.take_setting(entry[1], entry[2], line)
        elif (cut := _CUT_ENTRY.match(text)) and self.about[0]:
            self.take_setting(cut[1], "", line)
            self.remark(f"an entry that was cut, so {cut[1]} counts as not told", line)
        elif own := _PROPERTY.match(text):
            self.take_property(own[1], own[2], line)
        else:
            return False
        return True

    def remark(self, what: str, line: SpokenLine) -> None:
        self.remarks.setdefault(what, []).append(line.number)

    def lose(self, what: str, line: SpokenLine) -> None:
        """A line of which a partition may be missing."""
        self.losses.setdefault(what, []).append(line.number)

    def place(self, line: SpokenLine) -> str:
        return f"{self.source}, line {line.number}"

    def one_value(self, settings: Mapping[str, str], name: str, value: str, line: SpokenLine) -> str:
        """The value; Contradiction where another was told, and an answer depends on it."""
        if settings.get(name, value) != value:
            if name in DECISIVE:
                raise Contradiction(
                    f"{name} is {settings[name]} and then {value} of the same in {self.place(line)}: {ONE_SNAPSHOT}"
                )
            self.remark(f"{name} for a second time, and the last counts", line)
        return value

    # kafka-topics.sh

    def take_topic(self, line: SpokenLine, columns: Mapping[str, str]) -> None:
        name = columns.get("Topic", "")
        for column in columns.keys() - _COLUMNS:
            self.remark(f"with a column that is passed over, {column}", line)
        if line.is_joined:
            self.remark("wrapped, and is read as one with what follows", line)
        if not _NAME.fullmatch(name):
            self.lose("without the name of a topic, and passed over", line)
        elif "PartitionCount" in columns:
            self.take_heading(name, columns, line)
        elif (number := number_of(columns.get("Partition", ""))) is not None:
            self.take_partition(partition_of(name, number, columns, self.place(line)), line)
        else:
            self.lose("of a topic, with neither PartitionCount nor a number of a partition", line)

    def take_heading(self, name: str, columns: Mapping[str, str], line: SpokenLine) -> None:
        count, factor = (number_of(columns.get(n, "")) for n in ("PartitionCount", "ReplicationFactor"))
        for column, number in (("PartitionCount", count), ("ReplicationFactor", factor)):
            if number is None:
                self.remark(f"a heading without a number as {column}", line)
        settings = columns.get("Configs")
        if settings is None or is_cut(settings):
            self.remark("a heading whose Configs are not there, or cut, so its settings count as not told", line)
        configs: dict[str, str] = {}
        for setting, value in pairs_in(settings or ""):
            configs[setting] = self.one_value(configs, setting, value, line)
        topic = Topic(
            name,
            factor or 0,
            configs=configs,
            has_heading=settings is not None and not is_cut(settings),
            count=count or 0,
            topic_id=columns.get("TopicId", ""),
            source=self.place(line),
        )
        self.topics[name] = merge_topics(self.topics[name], topic) if name in self.topics else topic

    def take_partition(self, p: Partition, line: SpokenLine) -> None:
        for column in p.unread_columns:
            self.remark(f"a partition whose {column} is not there, or makes no sense", line)
        at = (p.topic, p.number)
        self.partitions[at] = merge_partitions(self.partitions[at], p) if at in self.partitions else p
        self.topics.setdefault(p.topic, Topic(p.topic, 0, has_heading=False))

    # The other tools

    def take_json(self, line: SpokenLine) -> None:
        """What kafka-log-dirs.sh prints, or a reassignment."""
        try:
            plan = plan_of(json.loads(line.text))
        except (ValueError, RecursionError):
            plan = None
        if plan is None:
            self.take_logs(line)
        else:
            self.plans.append(plan)

    def take_single(self, whose: str, name: str, value: str, line: SpokenLine) -> None:
        """A setting of which nobody told what stands beside it."""
        own = self.single.setdefault(whose, {})
        if name in _OF_A_BROKER:
            own[name] = self.one_value(own, name, value, line)

    def take_logs(self, line: SpokenLine) -> None:
        """The bytes of each replica's log."""
        try:
            for of in json.loads(line.text)["brokers"]:
                for log in (p for folder in of["logDirs"] for p in folder["partitions"] if not p["isFuture"]):
                    topic, _, number = str(log["partition"]).rpartition("-")
                    at, size = (topic, int(number)), {int(of["broker"]): int(log["size"])}
                    before = self.partitions.get(at, Partition(topic, int(number), None, (), ()))
                    self.partitions[at] = attrs.evolve(before, sizes={**before.sizes, **size})
                    self.topics.setdefault(topic, Topic(topic, 0, has_heading=False))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            self.remark("not what kafka-log-dirs.sh prints, or cut", line)

    def take_setting(self, name: str, value: str, line: SpokenLine) -> None:
        kind, whom = self.about
        if kind == "topic":
            topic = self.topics.get(whom, Topic(whom, 0, has_heading=False))
            value = self.one_value(topic.configs, name, value, line)
            self.topics[whom] = attrs.evolve(topic, configs={**topic.configs, name: value})
        elif kind:
            settings = self.dynamic.setdefault(whom, {}) if kind == "broker" and whom else self.defaults
            settings[name] = self.one_value(settings, name, value, line)

    def take_property(self, name: str, value: str, line: SpokenLine) -> None:
        """As java.util.Properties: the last of two counts. Two ids are two brokers, whose settings would be mixed."""
        own = self.brokers.setdefault(self.source, {})
        if own.get(name, value) != value:
            if name in _IDS:
                raise Contradiction(
                    f"{name} is {own[name]} and then {value} in {self.place(line)}: give each broker's properties alone"
                )
            self.remark(f"{name} for a second time, and the last counts", line)
        own[name] = value

    def sentences(self, remarks: Mapping[str, list[int]]) -> tuple[str, ...]:
        return tuple(f"{self.source}, {_places(lines)}: {what}" for what, lines in remarks.items())


def _places(lines: list[int]) -> str:
    named = ", ".join(map(str, lines[:MOST_LINES]))
    return f"line{'s' if len(lines) > 1 else ''} {named}" + (
        f" and {len(lines) - MOST_LINES} more" if len(lines) > MOST_LINES else ""
    )


MOST_LINES: Final = 4


def read_description(text: str, source: str) -> Cluster | None:
    """What a text tells of a cluster; None where nothing in it is recognised. `source` names the broker of a
    server.properties that does not tell its id. Contradiction where it tells of one thing twice, and not alike;
    Unreadable where it looks like YAML, and is none."""
    deployment = read_deployment(text, source, _OF_A_BROKER)
    if deployment is not None:
        return deployment
    reader = _Reader(source)
    is_of_kafka_configs = any(_HEADING.match(line) or _OLD_HEADING.match(line) for line in text.splitlines())
    whole = on_one_line(text)
    plain = (
        whole if is_of_kafka_configs else plain_properties(whole, _OF_A_BROKER, backslashes_only=speaks_of_topics(text))
    )
    for line in spoken_lines(plain, _begins_otherwise):
        reader.take(line)
    own = reader.brokers.pop(source, {})
    if not _OF_A_BROKER.isdisjoint(own):
        reader.brokers[_id_in(own, source)] = own
    partial = {_id_in(settings, whose): settings for whose, settings in reader.single.items() if settings}
    if len(partial) < len([s for s in reader.single.values() if s]) or partial.keys() & reader.brokers.keys():
        raise Contradiction(f"{source} tells of one broker twice: {ONE_SNAPSHOT}")
    reader.brokers |= partial
    topics = tuple(_topics_with(reader.topics, reader.partitions.values()))
    gaps, notes = _other_factors(reader.topics, reader.partitions.values())
    told = (topics, reader.brokers, reader.dynamic, reader.defaults, reader.features, reader.plans, reader.has_quorum)
    if not any(told):
        return None
    rack_by_broker = {number_of(b): c.get("broker.rack") for b, c in (*reader.brokers.items(), *reader.dynamic.items())}
    racks = {b: rack for b, rack in rack_by_broker.items() if b is not None and rack}
    return Cluster(
        topics,
        reader.brokers,
        reader.defaults,
        reader.features,
        racks,
        notes=(*reader.sentences(reader.remarks), *notes, *(plan_note(plan, source) for plan in reader.plans)),
        dynamic=reader.dynamic,
        missing=(*reader.sentences(reader.losses), *gaps),
        partial=frozenset(partial),
        has_quorum=reader.has_quorum,
        voters=reader.voters or None,
    )


def _id_in(settings: Mapping[str, str], otherwise: str) -> str:
    return next((settings[n] for n in _IDS if settings.get(n)), otherwise)


def plan_note(plan: Plan, source: str) -> str:
    """That a reassignment is not how the cluster is, and what asks about it."""
    more = f" and {len(plan.topics) - MOST_LINES} more" if plan.topics[MOST_LINES:] else ""
    topics = f"{', '.join(plan.topics[:MOST_LINES])}{more}"
    size = f"{plan.partitions} partition{'' if plan.partitions == 1 else 's'}"
    return (
        f"{source} is a reassignment of {size} ({topics}), which is a plan, and was not judged: "
        f'insync drill "reassign {source}" asks what it may lose'
    )


def _other_factors(topics: Mapping[str, Topic], partitions: Iterable[Partition]) -> tuple[list[str], list[str]]:
    """Headings with another ReplicationFactor than each of their partitions: gaps where it is larger, else notes.

    kafka-topics.sh counts the replicas of one partition, since 2.5 without those to be added, which 2.5 does not print
    (TopicCommand.getReplicationFactor, read in 2.5.1 and trunk). What observers do to it is not known.
    """
    counts: dict[str, set[int]] = {}
    for p in partitions:
        is_read = p.replicas and not p.observers and {"Replicas", "Adding Replicas"}.isdisjoint(p.unread_columns)
        counts.setdefault(p.topic, set()).add(len(p.replicas) - len(p.adding) if is_read else 0)
    gaps, notes = list[str](), list[str]()
    for name, sizes in counts.items():
        factor = topics[name].replicas if name in topics else 0
        if not factor or 0 in sizes or factor in sizes:
            continue
        says = f"{name}: its heading says ReplicationFactor {factor}, but a partition has {max(sizes)} replicas"
        if factor > max(sizes):
            gaps.append(says)
        else:
            notes.append(f"{says}, perhaps some to be added; {factor} counts")
    return gaps, notes


def _begins_otherwise(text: str) -> bool:
    """Whether a line is one of another tool than kafka-topics.sh, and so continues none of its."""
    if text.startswith('{"') or any(form.match(text) for form in (_FEATURE, _HEADING, _OLD_HEADING, _ENTRY)):
        return True
    own = _PROPERTY.match(text)
    return own is not None and own[1] in _OF_A_BROKER and "," not in own[2].removesuffix(",")


def _topics_with(topics: Mapping[str, Topic], partitions: Iterable[Partition]) -> Iterable[Topic]:
    by_topic: dict[str, list[Partition]] = {name: [] for name in topics}
    for p in partitions:
        by_topic[p.topic].append(p)
    for name, mine in by_topic.items():
        factors = [topics[name].replicas, *(len(p.members) for p in mine if "Replicas" not in p.unread_columns)]
        least = min((n for n in factors if n), default=0)
        ordered = tuple(sorted(mine, key=lambda p: p.number))
        yield attrs.evolve(topics[name], partitions=ordered, replicas=least)


def partition_of(topic: str, number: int, columns: Mapping[str, str], source: str) -> Partition:
    """A partition by its columns; those that are missing, make no sense, or contradict others are `unread_columns`."""
    unread_columns: list[str] = []

    def ids(column: str, text: str | None) -> tuple[int, ...]:
        numbers = tuple(map(int, re.findall(r"\d+", text or "")))
        if text is None or (text and not _IDS_TEXT.fullmatch(text)) or len(set(numbers)) < len(numbers):
            unread_columns.append(column)
            return ()
        return numbers

    leader_text = columns.get("Leader", "")
    leader = number_of(leader_text)
    if leader is None and leader_text.lower() not in NO_LEADER:
        unread_columns.append("Leader")
    replicas, isr = ids("Replicas", columns.get("Replicas") or None), ids("Isr", columns.get("Isr"))
    adding, removing, observers, offline = (ids(c, columns.get(c, "")) for c in _LIST_COLUMNS)
    elr_text = columns.get("Elr", NO_ELR)
    elr = None if elr_text == NO_ELR else ids("Elr", elr_text)
    last_text = columns.get("LastKnownElr", NO_ELR)
    if replicas and not set(isr) <= set(replicas):
        unread_columns.append("Isr")
    if set(elr or ()) & set(isr):
        unread_columns.append("Elr")  # an eligible leader replica has left the ISR
    if set(adding) & set(removing) or (replicas and set(replicas) <= set(adding)):
        unread_columns.append("Adding Replicas")  # where all were on their way, none would have to be in sync
        adding = ()
    for column, some in zip(_LIST_COLUMNS, (adding, removing, observers, offline), strict=True):
        if replicas and not set(some) <= set(replicas):
            unread_columns.append(column)  # whoever is added, removed, watches or is down is a replica
    if set(offline) & set(isr) and leader is not None:
        unread_columns.append("Isr")  # whoever is down leaves the ISR, but for the last member
    is_in_sync = "Isr" in unread_columns or leader in isr
    if leader is not None and (not is_in_sync or (replicas and leader not in replicas) or leader in offline):
        unread_columns.append("Leader")  # who leads is a replica, in sync, and there
    elr = None if "Elr" in unread_columns else elr
    return Partition(
        topic,
        number,
        leader,
        replicas,
        isr,
        elr,
        adding=adding,
        removing=removing,
        observers=observers,
        offline=offline,
        unread_columns=tuple(dict.fromkeys(unread_columns)),
        last_known_elr=tuple(map(int, re.findall(r"\d+", last_text))) if _is_ids(last_text) else None,
        source=source,
    )


def _is_ids(text: str) -> bool:
    """Whether a column has a list of brokers, which may be empty."""
    return not text or _IDS_TEXT.fullmatch(text) is not None


_PAIR: Final = re.compile(r"([a-z][\w.-]*)=(.*?)(?=,[a-z][\w.-]*=|$)")
_CUT_NAME: Final = re.compile(r",[a-z]\w*(?:\.[\w-]*)+$")


def pairs_in(text: str) -> list[tuple[str, str]]:
    """`a=1,b=x,y` as kafka-topics prints it: a comma may be part of a value. A name may be there twice."""
    return _PAIR.findall(text.strip())


def is_cut(settings: str) -> bool:
    """Whether the text of `Configs:` is not whole: it begins with no name, ends in one without a value, or says so."""
    text = settings.strip()
    return bool(text) and not (
        _PAIR.match(text) and not text.endswith((",", "...", "…")) and not _CUT_NAME.search(text)
    )
