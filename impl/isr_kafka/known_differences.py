"""Differences between Kafka and the model that are known, each by the exact state in which it shows.

docs/kafka-classes.md tells them by letter. One that is recognised here is counted apart and is no finding; anything
that differs in one more place, or by another value, is one. Where Kafka takes an action in place of another, or one
that the model forbids, it is known as well what comes of Kafka's own step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias, cast

CHANGES: Final = ("controller_starts_reassignment", "broker_restarts", "controller_learns_directory")
"""Changes of a partition that relieve its leader, too, as difference F is known."""

FENCES: Final = ("controller_fences_follower", "controller_fences_leader", "controller_fences_last_leader")
"""Actions that take away the session of `r`, or relieve it."""

ANSWERS: Final = ("leader_answers_fetch", "leader_answers_diverging")
"""The answers to fetches."""

HEAR_KNOWN: Final = ("leader_hears_known_version", "leader_loads_snapshot")
"""What tells a leader the version of the partition that it knows."""

OLD_NEWS: Final = {
    "leader_hears_known_version_of_old_image": "leader_hears_known_version",
    "broker_learns_old_minimum": "broker_learns_minimum",
}
"""What a broker does with an image of the metadata that is old -> the same with the newest metadata. Of the actions of
which a difference is known."""

IMAGE: Final = {"image_minimum": "minimum", "image_replicas": "replicas"}
"""What the image says -> what the controller says, of what is read of such an action."""

ELECT_UNCLEAN: Final = ("broker_restarts", *FENCES, "controller_cancels_reassignment")
"""Of the changes that relieve a leader those that ask whether unclean elections are enabled:
ReplicationControlManager.generateLeaderAndIsrUpdates and cancelPartitionReassignment, and no other."""

PARTITION: Final = (
    *("controller_leader", "controller_epoch", "controller_partition_epoch", "controller_isr", "controller_elr"),
    *("last_known_leader", "replicas", "adding", "removing", "elsewhere"),
)
"""What the controller has for the partition."""

SAME_POSITION: Final = "D: a fetch from where the follower was before does not move the watermark"
LEADER_RELIEVED: Final = "F: a leader that is shutting down loses leadership at any later change of the partition"
COMPLETE: Final = "K: a reassignment that waits may be complete with any change of the partition"
LAST_MEMBER: Final = "M: who is alone in the ISR where nobody leads is relieved without a new version of the partition"
EMPTY_EPOCH: Final = "O: who led an epoch without a record in it is told once more where the logs part"
UNCLEAN: Final = "P: with unclean.leader.election.enable somebody is elected in the step that leaves nobody else"

EARLIER_ANSWER: Final = "Q: a follower takes the answer to a fetch of an earlier epoch"
ANY_EPOCH: Final = ("4.0.0",)
"""The driven releases whose followers take answers of an earlier epoch, which is difference Q (KAFKA-18991)."""

ABSENT: Final = "R: a registration that strikes the last who is eligible elects who led last, though that is not there"
ANY_LAST_LEADER: Final = ("4.0.0", "4.0.1", "4.0.2")
"""The driven releases that elect a last known leader that may not lead, which is difference R (KAFKA-19522)."""

Values = Mapping[str, object]
Place = tuple[str, object, object]
Explain: TypeAlias = Callable[[str, Values, str, Values, Sequence[Place], Sequence[Place] | None], str]
"""What is known of a difference, as `explain` says it."""


def explain(
    kind: str,
    before: Values,
    action: str,
    parameters: Values,
    places: Sequence[Place],
    own: Sequence[Place] | None = None,
    *,
    release: str = "",
) -> str:
    """What is known of a difference, in a few words; nothing if nothing is.

    `before` is the model's state before the step; `places` have the model's value and Kafka's after it. `own` has them
    after the step that Kafka took in place of a missing one, or that is unexpected: the model's are those to which its
    action leads, allowed or not. It is None where Kafka took no step. `release`: one that may have differences of its
    own (`ANY_EPOCH`, `ANY_LAST_LEADER`).
    """
    if action in OLD_NEWS:
        action = OLD_NEWS[action]
        before = {**before, **{newest: before[old] for old, newest in IMAGE.items()}}
    match kind:
        case "inconsistent state":
            earlier = release in ANY_EPOCH and action in ANSWERS
            if earlier and _takes_earlier_answer(before, action, parameters, places):
                return EARLIER_ANSWER
            registers = release in ANY_LAST_LEADER and action == "broker_restarts"
            if registers and _strikes_and_elects_absent(before, parameters, places):
                return ABSENT
            return _explain_state(before, action, parameters, places)
        case "missing action":
            return "" if places else _explain_missing(before, action, parameters, own)
        case _:
            return "" if own is None else _explain_unexpected(before, action, parameters, own)


def _explain_state(before: Values, action: str, parameters: Values, places: Sequence[Place]) -> str:
    if action == "leader_answers_fetch" and _same_position(before, parameters, places):
        return SAME_POSITION
    if action in CHANGES and _relieves(before, action, parameters, places):
        return LEADER_RELIEVED
    if action == "controller_fences_last_leader" and _is_last_known(before, parameters, places):
        return "F: whoever led is the last known leader, though the ISR is not empty"
    if action in HEAR_KNOWN and _brings_minimum(before, parameters, places):
        return "I: with a version of the partition come the settings from before it"
    if action == "broker_learns_minimum" and _brings_version(before, parameters, places):
        return "I: with a setting come the versions of the partition from before it"
    if action == "broker_restarts" and _is_struck_twice(before, parameters, places):
        return "N: an index of the ELR that is not emptied with it strikes a broker twice"
    if action == "broker_restarts" and _strikes_and_elects_unclean(before, parameters, places):
        return UNCLEAN
    if action in CHANGES and _completes(before, places):
        return COMPLETE
    return ""


def _explain_missing(before: Values, action: str, parameters: Values, own: Sequence[Place] | None) -> str:
    if own is None:
        if action == "broker_learns_minimum" and _has_no_replica(before, parameters):
            return "J: a broker without a replica goes by no min.insync.replicas"
        waits = action == "broker_shuts_down" and _is_last_eligible(before, parameters)
        return UNCLEAN if waits and before.get("unclean_enabled") else ""
    if _keeps_leader(before, action, parameters) and _relieves(before, action, parameters, own):
        return LEADER_RELIEVED
    if action == "controller_fences_follower" and _is_last_member(before, parameters):
        return LAST_MEMBER if _are(own, {name: before.get(name) for name in PARTITION}) else ""
    if action == "controller_unfences" and _elects_awaited(before, parameters, own):
        return "L: a session that comes back has the controller elect another broker that may lead"
    if action == "leader_answers_fetch" and _tells_where_logs_part(before, parameters, own):
        return EMPTY_EPOCH
    if before.get("unclean_enabled") and _elects_unclean(before, action, parameters, own):
        return UNCLEAN
    return ""


def _explain_unexpected(before: Values, action: str, parameters: Values, own: Sequence[Place]) -> str:
    if _relieves_unexpectedly(before, action, parameters, own):
        return LEADER_RELIEVED
    if action == "controller_fences_outsider" and _is_last_member(before, parameters):
        return "" if own else LAST_MEMBER
    if action == "leader_answers_diverging" and _tells_where_logs_part(before, parameters, own):
        return EMPTY_EPOCH
    if action == "controller_fences_leader" and _is_succeeded_unclean(before, parameters, own):
        return UNCLEAN
    if action == "controller_learns_directory" and _completes(before, own):
        return COMPLETE
    return ""


def explain_in(release: str) -> Explain:
    """The same of one release, which may have differences of its own."""
    return partial(explain, release=release)


def _takes_earlier_answer(before: Values, action: str, parameters: Values, places: Sequence[Place]) -> bool:
    """AbstractFetcherThread.processFetchRequest without the comparison of leader epochs that KAFKA-18991 brought.

    A follower of the same leader in a later epoch, which would fetch from the same offset, does with the answer what
    it would have done before. In the model such an answer is lost.
    """
    leader, follower = cast("str", parameters["leader"]), cast("str", parameters["follower"])
    log, source = (cast("Sequence[int]", cast("Values", before["log"])[r]) for r in (follower, leader))
    watermark, bound = (cast("int", cast("Values", before["high_watermark"])[r]) for r in (follower, leader))
    epochs = (cast("Values", before[name])[follower] for name in ("fetch_epoch", "leader_epoch"))
    epoch, now = (cast("int", number) for number in epochs)
    offset = cast("Values", before["fetch_offset"])[follower]
    if cast("Values", before["leader"])[follower] != leader or epoch >= now or offset != len(log):
        return False
    kafka = {place: value for place, _, value in places}
    then = cast("Sequence[int]", kafka.get(f"log[{follower}]", log))
    if action == "leader_answers_diverging":
        fits, ends = len(then) < len(log) and then == log[: len(then)], [min(watermark, len(then))]
    else:
        fits = then in (log, source[: len(log) + 1])
        ends = list(range(max(watermark, min(bound, len(then))), len(then) + 1))
    expected_values: dict[str, Sequence[object]] = {f"log[{follower}]": [then], f"high_watermark[{follower}]": ends}
    return fits and bool(places) and _are_among(places, expected_values)


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


def _leaves(before: Values) -> bool:
    """Whether somebody leads who is shutting down.

    PartitionChangeBuilder.electLeader looks at each change whether the leader may lead, and one that is shutting down
    may not (ReplicationControlManager.LeaderAcceptor). In the model the leader stays.
    """
    leader = before.get("controller_leader")
    return leader is not None and leader in _names(before.get("shutting_down", ()))


def _who_takes_over(before: Values, action: str, parameters: Values, places: Sequence[Place]) -> tuple[set[str], bool]:
    """Who may lead where a leader is relieved that is shutting down, and whether that is unclean."""
    away = _away(before) | _leavers(before, action, parameters)
    away |= {cast("str", parameters["r"])} if action in FENCES else set[str]()
    members = _names(before["controller_isr"]) - away
    if members or not before.get("unclean_enabled") or action not in ELECT_UNCLEAN:
        return members, False
    completes = _is_due(before) and any(place in ("adding", "removing") for place, _, _ in places)
    return _names(_complete(before)["replicas"] if completes else before["replicas"]) - away, True


def _relieves(before: Values, action: str, parameters: Values, places: Sequence[Place]) -> bool:
    """Whether a member that is available leads in the next epoch, or with unclean elections another replica, or
    nobody, and nothing else differs.
    """
    if not _leaves(before):
        return False
    leader = before["controller_leader"]
    available, unclean = _who_takes_over(before, action, parameters, places)
    if unclean and available:
        return _one_leads(before, available, places)
    by_place = {place: (model, kafka) for place, model, kafka in places}
    elected = by_place.get("controller_leader", (leader, leader))[1]
    expected_values: dict[str, Sequence[object]] = {
        "controller_leader": sorted(available) or [None],
        "controller_epoch": [cast("int", before["controller_epoch"]) + 1],
        "controller_partition_epoch": [cast("int", before.get("controller_partition_epoch", 0)) + 1],
        "last_known_leader": [None if available else leader],
        **{place: [value] for place, value in _complete_if_due(before).items()},
    }
    bumps = "controller_epoch" in by_place or bool(_leavers(before, action, parameters))  # the model's leader, too
    return elected != leader and bumps and _are_among(places, expected_values)


def _leavers(before: Values, action: str, parameters: Values) -> set[str]:
    """Who is no replica any more after a reassignment that is complete at once, or cancelled."""
    match action:
        case "controller_reassigns_at_once":
            return _names(before["replicas"]) - _names(parameters["target"])
        case "controller_cancels_reassignment":
            return _names(before["adding"])
        case _:
            return set()


def _keeps_leader(before: Values, action: str, parameters: Values) -> bool:
    """Whether the leader stays with an action in the model, and is not the broker that the action takes away."""
    if action in ("controller_reassigns_at_once", "controller_cancels_reassignment"):
        return parameters["leader"] == before.get("controller_leader")
    return action == "controller_fences_follower" and parameters["r"] != before.get("controller_leader")


def _relieves_unexpectedly(before: Values, action: str, parameters: Values, own: Sequence[Place]) -> bool:
    """Whether an action is what a change looks like that relieves the leader, too, and comes to the same."""
    if not _leaves(before):
        return False
    leader, other = cast("str", before["controller_leader"]), parameters.get("r")
    available, unclean = _who_takes_over(before, action, parameters, own)
    match action:
        case "controller_learns_directory":
            return other == leader and _relieves(before, action, parameters, own)
        case "controller_fences_last_leader":
            nobody = {"last_known_leader": leader, **_complete_if_due(before)}
            return other != leader and not available and _are(own, nobody)
        case "controller_fences_leader":
            successor = parameters["successor"]
            takes_over = other != leader and successor in available
        case "controller_reassigns_at_once" | "controller_cancels_reassignment":
            successor = parameters["leader"]
            takes_over = successor in available
        case _:
            return False
    alone = {"controller_isr": [successor], "controller_elr": []} if unclean else dict[str, object]()
    epoch = {"controller_epoch": cast("int", before["controller_epoch"]) + 1}  # the model's only as far as it allows
    return takes_over and _are(own, alone | epoch | _complete_if_due(before))


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
    """The ISR is such that the next change of the partition may complete its reassignment: what is added is in it and,
    where there will be fewer replicas, all that stay. Before 4.3.0 it is all that stay in any case.
    """
    adding, removing = _names(before.get("adding", ())), _names(before.get("removing", ()))
    members = _names(before["controller_isr"]) - removing if adding or removing else set[str]()
    fewer = len(adding) < len(removing)
    return bool(members) and adding <= members and (not fewer or _names(before["replicas"]) - removing <= members)


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


def _tells_where_logs_part(before: Values, parameters: Values, own: Sequence[Place]) -> bool:
    """LeaderEpochFileCache keeps an entry of each epoch that a leader began, with or without a record.

    A fetch names the last entry. The model's names the epoch of the last record, so it takes an epoch between that and
    the one of the fetch. What Kafka's leader tells is no place before the one that is asked for, and it takes the fetch
    for no sign of where the follower is.
    """
    leader, follower = cast("str", parameters["leader"]), cast("str", parameters["follower"])
    asks = cast("Values", before["fetch"])[follower] == "requested"
    of_record = cast("int", cast("Values", before["fetch_last_epoch"])[follower])
    of_fetch = cast("int", cast("Values", before["fetch_epoch"])[follower])
    offset = cast("int", cast("Values", before["fetch_offset"])[follower])
    end = len(cast("Sequence[int]", cast("Values", before["log"])[leader]))
    unchanged = {
        place: [value]
        for name in ("high_watermark", "follower_end", "heard_of", "acked", "committed")
        for place, value in _places_of(before, name)
    }
    expected_values: dict[str, Sequence[object]] = {
        **unchanged,
        f"fetch[{follower}]": ["diverged"],
        f"fetch_offset[{follower}]": range(offset, end + 1),
        f"fetch_last_epoch[{follower}]": range(of_record, of_fetch),
        f"fetch_record[{follower}]": [None],
        f"fetch_watermark[{follower}]": [0],
    }
    return asks and of_fetch > of_record + 1 and _are_among(own, expected_values)


def _places_of(before: Values, name: str) -> Iterator[tuple[str, object]]:
    """The places of a variable down to the keys of its maps, with their values."""
    waiting = [(name, before.get(name))]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, Mapping):
            entries = cast("Mapping[str, object]", value).items()
            waiting += [(f"{place}[{key}]", part) for key, part in entries]
        else:
            yield place, value


def _others(before: Values, parameters: Values) -> set[str]:
    """The replicas that may lead but for the one that an action is about."""
    return _names(before["replicas"]) - _away(before) - {cast("str", parameters["r"])}


def _eligible(before: Values) -> set[str]:
    return _names(before["controller_isr"]) or _names(before["controller_elr"])


def _is_last_eligible(before: Values, parameters: Values) -> bool:
    """Whether nobody leads, one broker alone is eligible, and others may lead: it is relieved before it may stop."""
    nobody = before.get("controller_leader", "") is None
    return nobody and _eligible(before) == {parameters["r"]} and bool(_others(before, parameters))


def _elects_unclean(before: Values, action: str, parameters: Values, own: Sequence[Place]) -> bool:
    """PartitionChangeBuilder.electAnyLeader: where nobody else may lead, any replica with a session does.

    In the model nobody leads, until a step of its own.
    """
    leader, r = before["controller_leader"], cast("str", parameters.get("r", ""))
    match action:
        case "controller_fences_last_leader":
            return leader == r and _one_leads(before, _others(before, parameters), own)
        case "controller_unfences":
            back = {r} & _names(before["replicas"])
            return leader is None and _one_leads(before, (_others(before, parameters) | back) - _eligible(before), own)
        case _:
            return False


def _is_succeeded_unclean(before: Values, parameters: Values, own: Sequence[Place]) -> bool:
    """The same election where the model has its action for a clean one: the one who leads is alone in the ISR."""
    if not before.get("unclean_enabled"):
        return False
    leader, r, successor = before["controller_leader"], parameters["r"], parameters["successor"]
    eligible, others = _eligible(before), _others(before, parameters)
    goes = leader == r or (leader is None and eligible == {r})
    return goes and not eligible & others and _one_leads(before, others, own, cast("str", successor))


def _strikes_and_elects_unclean(before: Values, parameters: Values, places: Sequence[Place]) -> bool:
    """The same election in a registration that strikes whoever was left."""
    unclean = before.get("unclean_enabled") and before["controller_leader"] is None
    return bool(unclean) and _one_leads(before, _others(before, parameters) - _eligible(before), places)


def _strikes_and_elects_absent(before: Values, parameters: Values, places: Sequence[Place]) -> bool:
    """PartitionChangeBuilder.canElectLastKnownLeader, which in 4.0 is true whatever `isAcceptableLeader` says.

    So who led last leads with the record that strikes the last of ISR and ELR, also where it may not. Where it may,
    all releases elect it then (difference E).
    """
    leader, last, r = before["controller_leader"], before.get("last_known_leader"), cast("str", parameters["r"])
    eligible = _names(before["controller_isr"]) | _names(before.get("controller_elr", ()))
    absent = {cast("str", last)} & (_away(before) | {r}) & _names(before.get("replicas", [last]))
    return leader is None and eligible == {r} and _one_leads(before, absent, places)


def _one_leads(before: Values, candidates: set[str], places: Sequence[Place], led_by: str | None = None) -> bool:
    """Whether one of these leads, alone in the ISR, in the next epoch and version, and nothing else differs.

    But for a reassignment, which is complete with any version, once the ISR is such. `led_by`: who leads in the model.
    """
    elected = {place: kafka for place, _, kafka in places}.get("controller_leader", led_by)
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


def _elects_awaited(before: Values, parameters: Values, own: Sequence[Place]) -> bool:
    """ReplicationControlManager.handleBrokerUnfenced looks at all partitions without a leader.

    In the model who may lead is elected by a step of its own.
    """
    if before["controller_leader"] is not None:
        return False
    isr, elr = _names(before["controller_isr"]), _names(before["controller_elr"])
    last = before["last_known_leader"]
    may_lead = isr or elr or ({cast("str", last)} if last is not None else set[str]())
    candidates = may_lead - _away(before) - {cast("str", parameters["r"])}
    elected = {place: kafka for place, _, kafka in own}.get("controller_leader")
    expected_values: dict[str, Sequence[object]] = {
        "controller_leader": sorted(candidates),
        "controller_isr": [sorted(isr or {cast("str", elected)})],
        "controller_elr": [sorted(elr - {cast("str", elected)}), []],
        "controller_epoch": [cast("int", before["controller_epoch"]) + 1],
        "controller_partition_epoch": [cast("int", before["controller_partition_epoch"]) + 1],
        "last_known_leader": [None],
        **{place: [value] for place, value in _complete_if_due(before).items()},
    }
    return elected is not None and _are_among(own, expected_values)


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
