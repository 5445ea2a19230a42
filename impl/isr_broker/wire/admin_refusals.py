"""What admins are refused before the controller is asked: requests about topics that contradict themselves.

docs: ControllerApis.createTopics, createPartitions; ReplicationControlManager.createTopic;
ConfigAdminManager.preprocess.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Final

import attrs

from isr_broker import topic_configs
from isr_broker.core.messages import Error
from isr_broker.core.topics import may_be_called
from isr_broker.settings import Settings
from isr_broker.wire.protocol import Answer, Fields

_TOPIC: Final = 2
"""ConfigResource.Type."""
_SET, _DELETE = 0, 1
"""AlterConfigOp.OpType."""
_METADATA_TOPIC: Final = "__cluster_metadata"


@attrs.frozen
class Refusal:
    """An error, and the sentence that comes with it."""

    error: Error
    why: str

    def fields(self) -> Answer:
        """The two fields of an answer. The sentence may repeat what was asked, which may be as long as any text."""
        why = self.why if len(self.why) <= _LONGEST_SENTENCE else f"{self.why[:_LONGEST_SENTENCE]}..."
        return {"error_code": self.error.value, "error_message": why}


_LONGEST_SENTENCE: Final = 1_000


MOST_NEW: Final = 10_000
"""Records of metadata that one CreateTopics may need (QuorumController.MAX_RECORDS_PER_USER_OP)."""
_TOO_MUCH: Final = "Unable to perform excessively large batch operation."


def _records_of(topic: Fields, settings: Settings) -> int:
    """Records of metadata that a new topic needs: one, and one for each partition and setting."""
    return 1 + (len(topic.all("assignments")) or max(_partitions(topic, settings), 0)) + len(topic.all("configs"))


def refused_creations(
    topics: Sequence[Fields], settings: Settings, existing: set[str], of_others: Collection[str] = ()
) -> list[Refusal | None]:
    """Why each topic of a CreateTopics cannot be created as it is asked for; None where the controller decides.

    A topic that exists is the controller's to refuse, whatever else is wrong. Those `of_others` have any settings.
    """
    if sum(_records_of(topic, settings) for topic in topics) > MOST_NEW:
        return [Refusal(Error.POLICY_VIOLATION, _TOO_MUCH) for _ in topics]

    def refusal_of(topic: Fields) -> Refusal | None:
        name = topic.text("name")
        if name == _METADATA_TOPIC:
            return Refusal(Error.INVALID_REQUEST, f"{name} cannot be created")
        return None if name in existing else _bad_config(topic, name in of_others) or _bad_placement(topic)

    return _each_once(topics, _name_of, refusal_of, "Duplicate topic name.")


def _name_of(topic: Fields) -> str:
    return topic.text("name")


def _each_once(
    items: Sequence[Fields],
    key_of: Callable[[Fields], object],
    refusal_of: Callable[[Fields], Refusal | None],
    why: str,
) -> list[Refusal | None]:
    """The refusal of each item; all of those with a key that stands twice are refused."""
    counts = Counter(map(key_of, items))
    twice = Refusal(Error.INVALID_REQUEST, why)
    return [twice if counts[key_of(item)] > 1 else refusal_of(item) for item in items]


def _partitions(topic: Fields, settings: Settings) -> int:
    partitions = topic.number("num_partitions")
    return settings.num_partitions if partitions == -1 else partitions


def _bad_config(topic: Fields, of_others: bool) -> Refusal | None:
    """What is wrong with the settings of a new topic."""
    configs = topic.all("configs")
    empty = [c.text("name") for c in configs if not c.has("value")]
    if empty:
        return Refusal(Error.INVALID_CONFIG, f"a setting needs a value: {', '.join(empty)}")
    faults = (topic_configs.fault(c.text("name"), c.text("value"), of_others) for c in configs)
    why = next((why for why in faults if why), "")
    return Refusal(Error.INVALID_CONFIG, why) if why else None


def _bad_placement(topic: Fields) -> Refusal | None:
    """Numbers of partitions and replicas that there cannot be, or that contradict chosen replicas."""
    partitions, replicas = topic.number("num_partitions"), topic.number("replication_factor")
    numbers = [a.number("partition_index") for a in topic.all("assignments")]
    if numbers and replicas != -1:
        return Refusal(Error.INVALID_REQUEST, "replicas are chosen, so the replication factor has to be -1")
    if numbers and partitions != -1:
        return Refusal(Error.INVALID_REQUEST, "replicas are chosen, so the number of partitions has to be -1")
    if len(numbers) != len(set(numbers)):
        return Refusal(Error.INVALID_REPLICA_ASSIGNMENT, "replicas of a partition are chosen more than once")
    if sorted(numbers) != list(range(len(numbers))):
        return Refusal(Error.INVALID_REPLICA_ASSIGNMENT, "partitions have to be numbered from 0 on, without a gap")
    if not numbers and (replicas < -1 or replicas == 0):
        return Refusal(Error.INVALID_REPLICATION_FACTOR, "a replication factor is at least 1, or -1 for the default")
    if not numbers and (partitions < -1 or partitions == 0):
        return Refusal(Error.INVALID_PARTITIONS, "a number of partitions is at least 1, or -1 for the default")
    return None


def refused_extensions(topics: Sequence[Fields], existing: set[str]) -> list[Refusal | None]:
    """Why each topic of a CreatePartitions cannot have more as it is asked for; None where the controller decides."""

    def refusal_of(topic: Fields) -> Refusal | None:
        if topic.text("name") in existing and topic.has("assignments") and not topic.all("assignments"):
            return Refusal(Error.INVALID_REPLICA_ASSIGNMENT, "a list of chosen replicas cannot be empty")
        return None

    return _each_once(topics, _name_of, refusal_of, "Duplicate topic name.")


def refused_deletions(topics: Sequence[Fields]) -> list[Refusal | None]:
    """Why each topic of a DeleteTopics is not deleted as it is asked for (ControllerApis.deleteTopics)."""

    def key_of(topic: Fields) -> tuple[bool, str, bytes]:
        return topic.has("name"), topic.text("name"), topic.data("topic_id") or b""

    def refusal_of(topic: Fields) -> Refusal | None:
        has_id = any(topic.data("topic_id") or b"")
        if topic.has("name") and has_id:
            return Refusal(Error.INVALID_REQUEST, "You may not specify both topic name and topic id.")
        if not topic.has("name") and not has_id:
            return Refusal(Error.INVALID_REQUEST, "Neither topic name nor id were specified.")
        return None

    return _each_once(topics, key_of, refusal_of, "Duplicate topic name or id.")


def refused_alterations(resources: Sequence[Fields], every: bool) -> list[Refusal | None]:
    """Why the settings of each resource cannot be changed as asked; `every`: AlterConfigs, which replaces all."""

    def key_of(resource: Fields) -> tuple[int, str]:
        return resource.number("resource_type"), resource.text("resource_name")

    return _each_once(
        resources, key_of, lambda resource: _unalterable(resource, every), "Each resource must appear at most once."
    )


def _unalterable(resource: Fields, every: bool) -> Refusal | None:
    if resource.number("resource_type") != _TOPIC:
        return Refusal(Error.INVALID_REQUEST, "only the settings of topics can be changed")
    if not resource.text("resource_name"):
        return Refusal(Error.INVALID_REQUEST, "a topic has a name; there are no settings of all topics")
    if not may_be_called(resource.text("resource_name")):
        return Refusal(Error.INVALID_TOPIC_EXCEPTION, "no topic can have this name")
    names = Counter(c.text("name") for c in resource.all("configs"))
    if any(count > 1 for count in names.values()):
        return Refusal(Error.INVALID_REQUEST, "a setting is named more than once")
    operations = {c.number("config_operation", _SET) for c in resource.all("configs")}
    if not every and operations - {_SET, _DELETE}:
        return Refusal(Error.INVALID_CONFIG, "no setting here is a list that could be added to")
    empty = [c.text("name") for c in resource.all("configs") if not c.has("value") and not _is_deletion(c)]
    if empty:
        return Refusal(Error.INVALID_REQUEST, f"a setting needs a value: {', '.join(empty)}")
    changes = [change_of(config) for config in resource.all("configs")]
    why = next((why for name, value in changes if value is not None and (why := topic_configs.fault(name, value))), "")
    return Refusal(Error.INVALID_CONFIG, why) if why else None


def _is_deletion(config: Fields) -> bool:
    return config.number("config_operation", _SET) == _DELETE


def change_of(config: Fields) -> tuple[str, str | None]:
    """A setting and its new value, None where the topic is to have none of its own."""
    return config.text("name"), None if _is_deletion(config) else config.text("value")
