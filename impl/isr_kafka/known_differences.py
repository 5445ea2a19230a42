"""Differences between Kafka and the model that are known, each by the exact state in which it shows.

docs/kafka-classes.md tells them by letter. One that is recognised here is counted apart and is no finding; anything
that differs in one more place, or by another value, is one. Of an action that Kafka takes in place of another, or does
not take, only the state before is known here, and not what comes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

CHANGES: Final = ("controller_starts_reassignment", "broker_restarts", "controller_learns_directory")
"""Changes of a partition that relieve its leader, too, as difference F is known."""

ELECT_UNCLEAN: Final = ("broker_restarts", "controller_fences_leader", "controller_cancels_reassignment")
"""Of the changes that relieve a leader those that ask whether unclean elections are enabled:
ReplicationControlManager.generateLeaderAndIsrUpdates and cancelPartitionReassignment, and no other."""

LAST_MEMBER: Final = (
    ("missing action", "controller_fences_follower"),
    ("unexpected action", "controller_fences_outsider"),
)
"""How difference M shows."""

EMPTY_EPOCH: Final = (
    ("missing action", "leader_answers_fetch"),
    ("unexpected action", "leader_answers_diverging"),
)
"""How difference O shows."""

Values = Mapping[str, object]
Place = tuple[str, object, object]
Explain: TypeAlias = Callable[[str, Values, str, Values, Sequence[Place]], str]
"""What is known of a difference, as `explain` says it."""


def explain(kind: str, before: Values, action: str, parameters: Values, places: Sequence[Place]) -> str:
    """What is known of a difference, in a few words; nothing if nothing is.

    `before` is the model's state before the step; `places` have the model's value and Kafka's after it.
    """
    if (kind, action) == ("inconsistent state", "leader_answers_fetch") and _same_position(before, parameters, places):
        return "D: a fetch from where the follower was before does not move the watermark"
    if _leader_is_relieved(kind, before, action, parameters, places):
        return "F: a leader that is shutting down loses leadership at any later change of the partition"
    if (kind, action) == ("inconsistent state", "controller_fences_last_leader") and _is_last_known(
        before, parameters, places
    ):
        return "F: whoever led is the last known leader, though the ISR is not empty"
    if (kind, action) == ("inconsistent state", "leader_hears_known_version") and _brings_minimum(
        before, parameters, places
    ):
        return "I: with a version of the partition come the settings from before it"
    if (kind, action) == ("inconsistent state", "broker_learns_minimum") and _brings_version(
        before, parameters, places
    ):
        return "I: with a setting come the versions of the partition from before it"
    if (kind, action) == ("missing action", "broker_learns_minimum") and _has_no_replica(before, parameters):
        return "J: a broker without a replica goes by no min.insync.replicas"
    if _is_last_member(before, parameters) and (kind, action) in LAST_MEMBER:
        return "M: who is alone in the ISR, where nobody leads, is relieved without a new version of the partition"
    if (kind, action) == ("inconsistent state", "broker_restarts") and _is_struck_twice(before, parameters, places):
        return "N: an index of the ELR that is not emptied with it strikes a broker twice"
    if (kind, action) == ("missing action", "controller_unfences") and _another_may_lead(before, parameters):
        return "L: a session that comes back has the controller elect another broker that may lead"
    if (kind, action) in EMPTY_EPOCH and _may_have_led_without_a_record(before, parameters):
        return "O: who led an epoch without a record in it is told once more where the logs part"
    if before.get("unclean_enabled") and _elects_unclean(kind, before, action, parameters, places):
        return "P: with unclean.leader.election.enable somebody is elected in the step that leaves nobody else"
    tells = (kind, action) == ("unexpected action", "controller_learns_directory") and _is_due(before)
    if tells or (kind == "inconsistent state" and action in CHANGES and _completes(before, places)):
        return "K: a reassignment that waits may be complete with any change of the partition"
    return ""


def _same_position(before: Values, parameters: Values, places: Sequence[Place]) -> bool:
    """Partition.updateFollowerFetchState: a fetch that tells the leader nothing new does not try to move the watermark.

    Kafka's watermark, and all that follows from it, is then exactly what it was.
    """
    leader, follower = cast("str", parameters["leader"]), cast("str", parameters["follower"])
    ends = cast("Values", cast("Values", before["follower_end"])[leader])
    watermark = cast("Values", before["high_watermark"])[leader]
    expected_values = {
        f"high_watermark[{leader}]": watermark,
        f"fetch_watermark[{follower}]": watermark,
        "acked": before["acked"],
        "committed": before["committed"],
    }
    return (
        ends[follower] == cast("Values", before["fetch_offset"])[follower]
        and f"high_watermark[{leader}]" in {place for place, _, _ in places}
        and _are(places, expected_values)
    )


def _names(value: object) -> set[str]:
    return set(cast("Sequence[str]", value))


def _are_among(places: Sequence[Place], expected_values: Mapping[str, Sequence[object]]) -> bool:
    """Whether nothing differs but these places, each by one of Kafka's values that are expected there."""
    return all(place in expected_values and kafka in expected_values[place] for place, _, kafka in places)


def _are(places: Sequence[Place], expected_values: Mapping[str, object]) -> bool:
    """Whether nothing differs but these places, each by Kafka's value that is expected there."""
    return _are_among(places, {place: [value] for place, value in expected_values.items()})


def _away(before: Values) -> set[str]:
    """Who may not lead: without a session, about to stop, or in a directory that the controller does not know of."""
    return _names(before["fenced"]) | _names(before.get("shutting_down", ())) | _names(before.get("elsewhere", ()))


def _leader_is_relieved(kind: str, before: Values, action: str, parameters: Values, places: Sequence[Place]) -> bool:
    """PartitionChangeBuilder.electLeader looks at each change whether the leader may lead, and one that is shutting
    down may not (ReplicationControlManager.LeaderAcceptor).

    So a member that is available leads, in the next epoch, or with unclean elections another replica, or nobody. In
    the model the leader stays, so another action is taken there, or none.
    """
    leader = cast("str | None", before.get("controller_leader"))
    if leader is None or leader not in _names(before.get("shutting_down", ())):
        return False
    other = cast("str", parameters.get("r", leader))
    away = _away(before) | ({other} if action == "controller_fences_leader" and other != leader else set[str]())
    available = _names(before["controller_isr"]) - away
    unclean = bool(before.get("unclean_enabled")) and not available and action in ELECT_UNCLEAN
    if unclean:
        completes = _is_due(before) and action != "controller_cancels_reassignment"
        available = _names(_complete(before)["replicas"] if completes else before["replicas"]) - away
    if kind == "missing action":
        reassigns = action in ("controller_reassigns_at_once", "controller_cancels_reassignment")
        stays = reassigns and parameters["leader"] == leader
        return not places and (stays or (action == "controller_fences_follower" and other != leader))
    if kind == "unexpected action":
        return _elects_another(action, parameters, leader, other, available)
    if unclean and available:
        return action in CHANGES and _one_leads(before, available, places)
    by_place = {place: (model, kafka) for place, model, kafka in places}
    elected = by_place.get("controller_leader", (leader, leader))[1]
    expected_values: dict[str, Sequence[object]] = {
        "controller_leader": sorted(available) or [None],
        "controller_epoch": [cast("int", before["controller_epoch"]) + 1],
        "controller_partition_epoch": [cast("int", before.get("controller_partition_epoch", 0)) + 1],
        "last_known_leader": [None if available else leader],
        **{place: [value] for place, value in _complete_if_due(before).items()},
    }
    return (
        action in CHANGES
        and elected != leader
        and "controller_epoch" in by_place
        and _are_among(places, expected_values)
    )


def _elects_another(action: str, parameters: Values, leader: str, other: str, available: set[str]) -> bool:
    """Whether an action is what a change looks like that relieves the leader, too."""
    match action:
        case "controller_learns_directory":
            return other == leader
        case "controller_fences_last_leader":
            return other != leader and not available - {other}
        case "controller_fences_leader":
            return other != leader and parameters["successor"] in available - {other}
        case "controller_reassigns_at_once" | "controller_cancels_reassignment":
            return parameters["leader"] in available
        case _:
            return False


def _is_last_known(before: Values, parameters: Values, places: Sequence[Place]) -> bool:
    """PartitionChangeBuilder.maybeUpdateLastKnownLeader: whoever led is the last known leader once nobody leads.

    In the model only where the ISR is empty, too.
    """
    leader = before["controller_leader"]
    return [(place, kafka) for place, _, kafka in places] == [("last_known_leader", leader)] and (
        parameters["r"] == leader
    )


def _brings_minimum(before: Values, parameters: Values, places: Sequence[Place]) -> bool:
    """Metadata are read in the order of their log. The model's leader has its own min.insync.replicas from before."""
    leader = cast("str", parameters["leader"])
    own = cast("Values", before["own_minimum"])[leader]
    return list(places) == [(f"own_minimum[{leader}]", own, before["minimum"])] and own != before["minimum"]


def _brings_version(before: Values, parameters: Values, places: Sequence[Place]) -> bool:
    """The same the other way round: the leader has heard the version that it knew from an answer, has forgotten what
    it proposed since, and has looked at the watermark by the minimum from before. The model's has it still to hear.
    """
    r, ahead = cast("str", parameters["r"]), _names(before["ahead"])
    expected_values: dict[str, object] = {"ahead": sorted(ahead - {r}), f"pending_isr[{r}]": []}
    watermark = _watermark_of_isr(before, r)
    if watermark is not None:
        records = cast("Sequence[int]", cast("Values", before["log"])[r])[:watermark]
        expected_values |= {
            f"high_watermark[{r}]": watermark,
            "committed": list(records),
            "acked": sorted({*cast("Sequence[int]", before["acked"]), *records}),
        }
    return r in ahead and "ahead" in {place for place, _, _ in places} and _are(places, expected_values)


def _watermark_of_isr(before: Values, r: str) -> int | None:
    """Where all members of a leader's ISR are, without those that it has proposed; None under its minimum."""
    members = _names(cast("Values", before["isr"])[r]) - {r}
    ends = cast("Values", cast("Values", before["follower_end"])[r])
    if len(members) + 1 < cast("int", cast("Values", before["own_minimum"])[r]):
        return None
    log = cast("Sequence[int]", cast("Values", before["log"])[r])
    return min([len(log), *(cast("int | None", ends[member]) or 0 for member in members)])


def _has_no_replica(before: Values, parameters: Values) -> bool:
    """A broker knows a topic's configuration by the logs that it has. The model's has a number all the same."""
    return "replicas" in before and parameters["r"] not in _names(before["replicas"])


def _is_due(before: Values) -> bool:
    """The ISR is such that the next change of the partition completes its reassignment."""
    adding, removing = _names(before.get("adding", ())), _names(before.get("removing", ()))
    members = _names(before["controller_isr"]) - removing if adding or removing else set[str]()
    return bool(members) and adding <= members


def _complete(before: Values) -> dict[str, object]:
    """The replicas once the reassignment is complete, and who of them is in a directory that nobody was told of."""
    others = _names(before["replicas"]) - _names(before["removing"])
    elsewhere = sorted(_names(before.get("elsewhere", ())) & others)
    return {"replicas": sorted(others), "adding": [], "removing": [], "elsewhere": elsewhere}


def _complete_if_due(before: Values) -> dict[str, object]:
    """The same where any change of the partition completes it, else nothing."""
    return _complete(before) if _is_due(before) else {}


def _completes(before: Values, places: Sequence[Place]) -> bool:
    """PartitionChangeBuilder.completeReassignmentIfNeeded comes with each change; in the model with proposals only.

    Who is removed was in no set, so that nothing else differs.
    """
    if not _is_due(before):
        return False
    adding, removing = _names(before["adding"]), _names(before["removing"])
    others = _names(before["replicas"]) - removing
    epoch, version = cast("int", before["controller_epoch"]), cast("int", before["controller_partition_epoch"])
    expected_values = {
        **_complete(before),
        "controller_epoch": epoch + 1 if removing else epoch,
        "controller_partition_epoch": version + 1,
    }
    changed = {"adding"} if adding else set[str]()
    changed |= {"removing", "replicas", "controller_epoch"} if removing else set[str]()
    return (
        _names(before["controller_isr"]) <= others
        and changed <= {place for place, _, _ in places}
        and _are(places, expected_values)
    )


def _may_have_led_without_a_record(before: Values, parameters: Values) -> bool:
    """LeaderEpochFileCache keeps an entry of each epoch that a leader began, with or without a record.

    A fetch names the last entry. The model's names the epoch of the last record, so it takes an epoch between that and
    the one of the fetch.
    """
    follower = cast("str", parameters["follower"])
    asks = cast("Values", before["fetch"])[follower] == "requested"
    of_record = cast("int", cast("Values", before["fetch_last_epoch"])[follower])
    return asks and cast("int", cast("Values", before["fetch_epoch"])[follower]) > of_record + 1


def _elects_unclean(kind: str, before: Values, action: str, parameters: Values, places: Sequence[Place]) -> bool:
    """PartitionChangeBuilder.electAnyLeader: where nobody else may lead, any replica with a session does.

    In the model nobody leads, until a step of its own.
    """
    leader, r = before["controller_leader"], cast("str", parameters.get("r", ""))
    eligible = _names(before["controller_isr"]) or _names(before["controller_elr"])
    others = _names(before["replicas"]) - _away(before) - {r}
    match kind, action:
        case ("missing action", "controller_fences_last_leader"):
            return leader == r and bool(others)
        case ("unexpected action", "controller_fences_leader"):
            goes = leader == r or (leader is None and eligible == {r})
            return goes and parameters["successor"] in others and not eligible & others
        case ("missing action", "broker_shuts_down"):
            return leader is None and eligible == {r} and bool(others)
        case ("missing action", "controller_unfences"):
            return leader is None and bool(others | (_names(before["replicas"]) & {r}) - eligible)
        case ("inconsistent state", "broker_restarts"):
            return leader is None and _one_leads(before, others - eligible, places)
        case _:
            return False


def _one_leads(before: Values, candidates: set[str], places: Sequence[Place]) -> bool:
    """Whether one of these leads, alone in the ISR, in the next epoch and version, and nothing else differs.

    But for a reassignment, which is complete with any version, once the ISR is such.
    """
    elected = {place: kafka for place, _, kafka in places}.get("controller_leader")
    expected_values = {
        "controller_leader": elected,
        "controller_isr": [elected],
        "controller_elr": [],
        "controller_epoch": cast("int", before["controller_epoch"]) + 1,
        "controller_partition_epoch": cast("int", before["controller_partition_epoch"]) + 1,
        "last_known_leader": None,
        **_complete_if_due(before),
    }
    return elected in candidates and _are(places, expected_values)


def _another_may_lead(before: Values, parameters: Values) -> bool:
    """ReplicationControlManager.handleBrokerUnfenced looks at all partitions without a leader.

    In the model who may lead is elected by a step of its own.
    """
    if before["controller_leader"] is not None:
        return False
    isr, elr = _names(before["controller_isr"]), _names(before["controller_elr"])
    last = before["last_known_leader"]
    may_lead = isr or elr or ({cast("str", last)} if last is not None else set[str]())
    return bool(may_lead - _away(before) - {cast("str", parameters["r"])})


def _is_last_member(before: Values, parameters: Values) -> bool:
    """PartitionChangeBuilder.build: without an ELR the ISR stays what it is rather than empty, and nothing changes."""
    nobody = before.get("controller_leader", "") is None and before["controller_elr"] == []
    return nobody and before["controller_isr"] == [parameters.get("r")]


def _is_struck_twice(before: Values, parameters: Values, places: Sequence[Place]) -> bool:
    """ReplicationControlManager.replay(ClearElrRecord) leaves BrokersToElrs as it is, which then has a partition twice.

    Each entry writes a record with the same ELR, so that only the version differs.
    """
    if [place for place, _, _ in places] != ["controller_partition_epoch"] or not before.get("minimum_changes"):
        return False
    _, model, kafka = places[0]
    return parameters["r"] in _names(before["controller_elr"]) and kafka == cast("int", model) + 1
