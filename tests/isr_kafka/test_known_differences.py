"""A difference is known by the state before it, and where there is one by the state after it, to the last value."""

from collections.abc import Mapping

import pytest

from isr_kafka.known_differences import IMAGE, OLD_NEWS, Place, explain, explain_in
from isr_protocol.designs.old_metadata import NEWS

BEFORE: dict[str, object] = {
    "follower_end": {"r1": {"r1": None, "r2": 1}, "r2": {"r1": None, "r2": None}},
    "fetch_offset": {"r1": 0, "r2": 1},
    "fetch": {"r1": "none", "r2": "requested"},
    "fetch_epoch": {"r1": 0, "r2": 1},
    "fetch_last_epoch": {"r1": 0, "r2": 0},
    "high_watermark": {"r1": 0, "r2": 0},
    "acked": [],
    "committed": [],
    "log": {"r1": [0], "r2": [0]},
}
GIVEN = {"leader": "r1", "follower": "r2"}
PLACES: list[Place] = [
    ("high_watermark[r1]", 1, 0),
    ("fetch_watermark[r2]", 1, 0),
    ("acked", [0], []),
    ("committed", [0], []),
]
KIND, ACTION = "inconsistent state", "leader_answers_fetch"


def test_a_fetch_from_the_same_position_that_moves_no_watermark_is_difference_d() -> None:
    assert explain(KIND, BEFORE, ACTION, GIVEN, PLACES).startswith("D:")
    assert explain(KIND, BEFORE, ACTION, GIVEN, PLACES[:2]).startswith("D:")


@pytest.mark.parametrize(
    ("kind", "action", "before", "places"),
    [
        ("missing action", ACTION, BEFORE, PLACES),
        (KIND, "leader_appends", BEFORE, PLACES),
        (KIND, ACTION, BEFORE | {"fetch_offset": {"r1": 0, "r2": 2}}, PLACES),
        (KIND, ACTION, BEFORE, [*PLACES, ("isr[r1]", ["r1"], ["r1", "r2"])]),
        (KIND, ACTION, BEFORE, [("high_watermark[r1]", 1, 2), *PLACES[1:]]),
        (KIND, ACTION, BEFORE, [*PLACES[:2], ("acked", [0], [1])]),
        (KIND, ACTION, BEFORE, PLACES[2:]),
    ],
)
def test_whatever_else_differs_is_a_finding(
    kind: str, action: str, before: dict[str, object], places: list[Place]
) -> None:
    assert not explain(kind, before, action, GIVEN, places)


LEAVING: dict[str, object] = {
    "controller_leader": "r1",
    "controller_isr": ["r1"],
    "controller_epoch": 0,
    "shutting_down": ["r1"],
    "fenced": [],
    "replicas": ["r1", "r2"],
    "adding": [],
}
NOBODY: list[Place] = [
    ("controller_leader", "r1", None),
    ("controller_epoch", 0, 1),
    ("last_known_leader", None, "r1"),
]
NOTHING: list[object] = []
UNNAMED: dict[str, object] = {}
ANOTHER: list[Place] = [("controller_leader", "r1", "r2"), ("controller_epoch", 0, 1)]
ISR_KEPT: list[Place] = [*NOBODY, ("controller_isr", ["r1"], ["r1", "r2"])]
STARTS, AT_ONCE = "controller_starts_reassignment", "controller_reassigns_at_once"


def test_a_leader_that_is_shutting_down_and_loses_leadership_where_somebody_reassigns_is_difference_f() -> None:
    target = {"target": ["r1", "r2"]}
    assert explain(KIND, LEAVING, STARTS, target, NOBODY).startswith("F:")
    assert explain(KIND, LEAVING | {"controller_isr": ["r1", "r2"]}, STARTS, target, ANOTHER).startswith("F:")
    cancels = "controller_cancels_reassignment"
    assert explain("missing action", LEAVING, AT_ONCE, {"target": ["r1"], "leader": "r1"}, [], NOBODY).startswith("F:")
    assert explain("missing action", LEAVING, cancels, {"leader": "r1"}, [], NOBODY).startswith("F:")
    assert not explain("missing action", LEAVING, cancels, {"leader": "r1"}, [], ISR_KEPT)
    only = [NOBODY[0], NOBODY[2]]  # the model has the next epoch, too, where a replica is removed
    assert explain("missing action", LEAVING, AT_ONCE, {"target": ["r1"], "leader": "r1"}, [], only).startswith("F:")
    assert not explain("missing action", LEAVING, cancels, {"leader": "r1"}, [], only)
    assert not explain("missing action", LEAVING, cancels, {"leader": "r1"}, [])


TELLS, FENCES_LAST = "controller_learns_directory", "controller_fences_last_leader"
BOTH = LEAVING | {"controller_isr": ["r1", "r2"], "shutting_down": ["r1", "r2"]}


@pytest.mark.parametrize(
    ("kind", "action", "before", "r", "places"),
    [
        (KIND, "broker_restarts", LEAVING | {"elsewhere": ["r2"]}, "r2", NOBODY),
        (KIND, TELLS, LEAVING | {"elsewhere": ["r2"]}, "r2", NOBODY[:2]),
        ("unexpected action", TELLS, LEAVING, "r1", NOBODY),
        ("missing action", "controller_fences_follower", BOTH, "r2", NOBODY),
        ("unexpected action", FENCES_LAST, BOTH, "r2", [NOBODY[2]]),
    ],
)
def test_so_is_any_other_change_of_its_partition(
    kind: str, action: str, before: dict[str, object], r: str, places: list[Place]
) -> None:
    assert told(kind, before, action, {"r": r}, places).startswith("F:")
    assert not told(kind, before | {"shutting_down": ["r2"]}, action, {"r": r}, places)
    assert not told(kind, before, action, {"r": r}, [*places, ("controller_isr", ["r1"], ["r1", "r2"])])


def told(
    kind: str, before: dict[str, object], action: str, parameters: Mapping[str, object], places: list[Place]
) -> str:
    """What is known, where Kafka's own step shows these places if it takes another than the model."""
    if kind == KIND:
        return explain(kind, before, action, parameters, places)
    return explain(kind, before, action, parameters, [], places)


@pytest.mark.parametrize(
    ("kind", "action", "before", "parameters", "places"),
    [
        (KIND, TELLS, LEAVING, {"r": "r2"}, ANOTHER),
        (KIND, TELLS, LEAVING | {"controller_isr": ["r1", "r2"]}, {"r": "r2"}, NOBODY[:2]),
        (KIND, TELLS, LEAVING | {"controller_isr": ["r1", "r2"], "elsewhere": ["r2"]}, {"r": "r2"}, ANOTHER),
        ("unexpected action", TELLS, LEAVING, {"r": "r2"}, NOBODY),
        ("missing action", "controller_fences_follower", BOTH, {"r": "r1"}, NOBODY),
        ("unexpected action", FENCES_LAST, BOTH, {"r": "r1"}, [NOBODY[2]]),
        ("unexpected action", FENCES_LAST, BOTH | {"controller_isr": ["r1", "r2", "r3"]}, {"r": "r2"}, []),
        ("unexpected action", "controller_fences_leader", BOTH, {"r": "r2", "successor": "r2"}, []),
        ("unexpected action", "broker_restarts", LEAVING, {"r": "r2"}, []),
        (KIND, STARTS, LEAVING | {"shutting_down": NOTHING}, UNNAMED, NOBODY),
        (KIND, STARTS, LEAVING, UNNAMED, ANOTHER),
        (KIND, STARTS, LEAVING | {"controller_isr": ["r1", "r2"]}, UNNAMED, NOBODY),
        (KIND, STARTS, LEAVING | {"controller_isr": ["r1", "r2"], "fenced": ["r2"]}, UNNAMED, ANOTHER),
        (KIND, STARTS, LEAVING, UNNAMED, [*NOBODY, ("controller_isr", ["r1"], NOTHING)]),
        (KIND, STARTS, LEAVING, UNNAMED, [NOBODY[0], ("controller_epoch", 0, 2), NOBODY[2]]),
        (KIND, STARTS, LEAVING, UNNAMED, [NOBODY[2]]),
        (KIND, AT_ONCE, LEAVING, {"leader": "r1"}, NOBODY),
        (KIND, "controller_sets_minimum", LEAVING, UNNAMED, NOBODY),
        ("missing action", STARTS, LEAVING, UNNAMED, NOBODY),
        ("missing action", AT_ONCE, LEAVING, {"leader": "r2"}, NOBODY),
        ("missing action", AT_ONCE, LEAVING | {"shutting_down": ["r2"]}, {"leader": "r1"}, NOBODY),
        ("unexpected action", AT_ONCE, LEAVING, {"target": ["r1"], "leader": "r1"}, []),
    ],
)
def test_whatever_else_a_leader_that_is_shutting_down_does_is_a_finding(
    kind: str, action: str, before: dict[str, object], parameters: dict[str, object], places: list[Place]
) -> None:
    assert not told(kind, before, action, parameters, places)


@pytest.mark.parametrize(
    ("action", "parameters"),
    [
        ("controller_fences_leader", {"r": "r3", "successor": "r2"}),
        (AT_ONCE, {"target": ["r2"], "leader": "r2"}),
        ("controller_cancels_reassignment", {"leader": "r2"}),
    ],
)
def test_so_is_a_change_that_elects_a_member_which_is_available(action: str, parameters: dict[str, object]) -> None:
    both = LEAVING | {"controller_isr": ["r1", "r2"]}
    assert told("unexpected action", both, action, parameters, []).startswith("F:")
    assert not told("unexpected action", both | {"shutting_down": NOTHING}, action, parameters, [])
    assert not told("unexpected action", both | {"fenced": ["r2"]}, action, parameters, [])
    assert not told("unexpected action", both, action, parameters, [("controller_epoch", 1, 0)])
    assert not explain("unexpected action", both, action, parameters, [])


def test_whoever_led_is_the_last_known_leader_though_the_isr_is_not_empty() -> None:
    isr = LEAVING | {"controller_isr": ["r1", "r2"], "shutting_down": NOTHING, "fenced": ["r2"]}
    assert explain(KIND, isr, FENCES_LAST, {"r": "r1"}, [NOBODY[2]]).startswith("F:")
    assert not explain(KIND, isr, FENCES_LAST, {"r": "r1"}, [("last_known_leader", None, "r2")])
    assert not explain(KIND, isr, FENCES_LAST, {"r": "r1"}, [NOBODY[2], ("controller_isr", ["r2"], NOTHING)])
    assert not explain(KIND, isr, FENCES_LAST, {"r": "r2"}, [NOBODY[2]])


LEARNS = "broker_learns_minimum"


def test_a_broker_without_a_replica_goes_by_no_minimum_which_is_difference_j() -> None:
    assert explain("missing action", {"replicas": ["r1"]}, LEARNS, {"r": "r2"}, []).startswith("J:")
    assert not explain("missing action", {"replicas": ["r1", "r2"]}, LEARNS, {"r": "r2"}, [])
    assert not told("unexpected action", {"replicas": ["r1"]}, LEARNS, {"r": "r2"}, [])
    assert not told("missing action", {"replicas": ["r1"]}, LEARNS, {"r": "r2"}, [("isr[r2]", NOTHING, ["r2"])])


WAITS: dict[str, object] = {
    "controller_leader": "r1",
    "controller_isr": ["r1"],
    "controller_epoch": 3,
    "controller_partition_epoch": 5,
    "replicas": ["r1", "r3"],
    "adding": ["r1"],
    "removing": ["r3"],
}
IS_COMPLETE: list[Place] = [
    ("replicas", ["r1", "r3"], ["r1"]),
    ("adding", ["r1"], NOTHING),
    ("removing", ["r3"], NOTHING),
    ("controller_epoch", 3, 4),
]


def test_a_reassignment_that_another_change_completes_is_difference_k() -> None:
    assert explain(KIND, WAITS, "broker_restarts", {"r": "r3"}, IS_COMPLETE).startswith("K:")
    assert told("unexpected action", WAITS, TELLS, {"r": "r1"}, IS_COMPLETE).startswith("K:")
    assert not told("unexpected action", WAITS, TELLS, {"r": "r1"}, IS_COMPLETE[:2])
    assert not told("unexpected action", WAITS, TELLS, {"r": "r1"}, [*IS_COMPLETE, ("minimum", 1, 2)])
    elsewhere = ("elsewhere", WAITS["removing"], NOTHING)
    away = WAITS | {"elsewhere": WAITS["removing"]}
    assert explain(KIND, away, "broker_restarts", {"r": "r3"}, [*IS_COMPLETE, elsewhere]).startswith("K:")
    kept = ("elsewhere", NOTHING, WAITS["removing"])
    assert not explain(KIND, away, "broker_restarts", {"r": "r3"}, [*IS_COMPLETE, kept])
    added = WAITS | {"removing": NOTHING, "replicas": ["r1", "r3"]}
    assert explain(KIND, added, "broker_restarts", {"r": "r3"}, [IS_COMPLETE[1]]).startswith("K:")


@pytest.mark.parametrize(
    ("kind", "action", "before", "places"),
    [
        ("missing action", "broker_restarts", WAITS, []),
        ("unexpected action", "broker_restarts", WAITS, IS_COMPLETE),
        ("unexpected action", TELLS, WAITS | {"controller_isr": ["r3"]}, IS_COMPLETE),
        ("unexpected action", TELLS, WAITS | {"adding": NOTHING, "removing": NOTHING}, IS_COMPLETE),
        (KIND, "controller_accepts_alter_partition", WAITS, IS_COMPLETE),
        (KIND, "broker_restarts", WAITS, IS_COMPLETE[:2]),
        (KIND, "broker_restarts", WAITS, [*IS_COMPLETE[:3], ("controller_epoch", 3, 5)]),
        (KIND, "broker_restarts", WAITS, [*IS_COMPLETE, ("controller_isr", ["r1"], NOTHING)]),
        (KIND, "broker_restarts", WAITS | {"controller_isr": ["r3"]}, IS_COMPLETE),
        (KIND, "broker_restarts", WAITS | {"controller_isr": NOTHING}, IS_COMPLETE),
        (KIND, "broker_restarts", WAITS | {"adding": ["r1", "r2"]}, IS_COMPLETE),
        (KIND, "broker_restarts", WAITS | {"adding": NOTHING, "removing": NOTHING}, IS_COMPLETE),
    ],
)
def test_whatever_else_becomes_of_a_reassignment_is_a_finding(
    kind: str, action: str, before: dict[str, object], places: list[Place]
) -> None:
    assert not told(kind, before, action, {"r": "r3"}, places)


NOBODY_LEADS: dict[str, object] = {
    "controller_leader": None,
    "controller_epoch": 1,
    "controller_partition_epoch": 4,
    "controller_isr": NOTHING,
    "controller_elr": NOTHING,
    "last_known_leader": "r2",
    "fenced": ["r1"],
}


AWAITED: list[Place] = [
    ("controller_leader", None, "r2"),
    ("controller_isr", NOTHING, ["r2"]),
    ("controller_epoch", 1, 2),
    ("controller_partition_epoch", 4, 5),
    ("last_known_leader", "r2", None),
]


@pytest.mark.parametrize(
    ("before", "known"),
    [
        (NOBODY_LEADS, True),
        (NOBODY_LEADS | {"controller_elr": ["r2"], "last_known_leader": None}, True),
        (NOBODY_LEADS | {"controller_leader": "r3"}, False),
        (NOBODY_LEADS | {"elsewhere": ["r2"]}, False),
        (NOBODY_LEADS | {"fenced": ["r1", "r2"]}, False),
        (NOBODY_LEADS | {"last_known_leader": "r1"}, False),
        (NOBODY_LEADS | {"controller_elr": ["r1"]}, False),
    ],
)
def test_a_session_that_comes_back_elects_another_which_is_difference_l(before: dict[str, object], known: bool) -> None:
    assert told("missing action", before, "controller_unfences", {"r": "r1"}, AWAITED).startswith("L:") == known


@pytest.mark.parametrize(
    "wrong",
    [
        ("controller_leader", None, "r3"),
        ("controller_isr", NOTHING, ["r1", "r2"]),
        ("controller_isr", NOTHING, ["r3"]),
        ("controller_epoch", 1, 3),
        ("fenced", NOTHING, ["r1"]),
    ],
)
def test_another_election_with_a_session_that_comes_back_is_a_finding(wrong: Place) -> None:
    places = [place for place in AWAITED if place[0] != wrong[0]]
    assert not told("missing action", NOBODY_LEADS, "controller_unfences", {"r": "r1"}, [*places, wrong])


ALONE_IN_ISR: dict[str, object] = {"controller_leader": None, "controller_isr": ["r1"], "controller_elr": []}


@pytest.mark.parametrize(
    ("kind", "action", "before", "known"),
    [
        ("missing action", "controller_fences_follower", ALONE_IN_ISR, True),
        ("unexpected action", "controller_fences_outsider", ALONE_IN_ISR, True),
        ("unexpected action", "controller_fences_follower", ALONE_IN_ISR, False),
        ("missing action", "controller_fences_follower", ALONE_IN_ISR | {"controller_leader": "r2"}, False),
        ("missing action", "controller_fences_follower", ALONE_IN_ISR | {"controller_isr": ["r1", "r2"]}, False),
        ("missing action", "controller_fences_follower", ALONE_IN_ISR | {"controller_isr": ["r2"]}, False),
        ("missing action", "controller_fences_follower", ALONE_IN_ISR | {"controller_elr": ["r2"]}, False),
    ],
)
def test_the_last_member_that_is_relieved_where_nobody_leads_is_difference_m(
    kind: str, action: str, before: dict[str, object], known: bool
) -> None:
    other = kind == "missing action"
    own: list[Place] = [("controller_isr", NOTHING, before["controller_isr"])] if other else []
    assert told(kind, before, action, {"r": "r1"}, own).startswith("M:") == known
    assert not told(kind, before, action, {"r": "r1"}, [("controller_isr", NOTHING, ["r3"])])
    assert not explain(kind, before, action, {"r": "r1"}, [])


ELIGIBLE: dict[str, object] = {"controller_elr": ["r3"], "minimum_changes": 1}
TWICE: list[Place] = [("controller_partition_epoch", 7, 8)]


@pytest.mark.parametrize(
    ("before", "places", "known"),
    [
        (ELIGIBLE, TWICE, True),
        (ELIGIBLE | {"minimum_changes": 0}, TWICE, False),
        (ELIGIBLE | {"controller_elr": ["r1"]}, TWICE, False),
        (ELIGIBLE, [("controller_partition_epoch", 7, 9)], False),
        (ELIGIBLE, [*TWICE, ("controller_elr", NOTHING, ["r3"])], False),
    ],
)
def test_a_broker_that_is_struck_twice_is_difference_n(
    before: dict[str, object], places: list[Place], known: bool
) -> None:
    assert explain(KIND, before, "broker_restarts", {"r": "r3"}, places).startswith("N:") == known


LATER = {"fetch_epoch": {"r1": 0, "r2": 2}}
TOLD: list[Place] = [
    ("fetch[r2]", "answered", "diverged"),
    ("fetch_offset[r2]", 0, 1),
    ("fetch_last_epoch[r2]", 0, 1),
    ("high_watermark[r1]", 1, 0),
    ("follower_end[r1][r2]", 0, 1),
]


@pytest.mark.parametrize(
    ("kind", "action", "before", "known"),
    [
        ("missing action", ACTION, BEFORE | LATER, True),
        ("unexpected action", "leader_answers_diverging", BEFORE | LATER, True),
        ("missing action", ACTION, BEFORE, False),
        ("unexpected action", ACTION, BEFORE | LATER, False),
        ("missing action", "leader_answers_diverging", BEFORE | LATER, False),
        ("missing action", ACTION, BEFORE | LATER | {"fetch": {"r2": "answered"}}, False),
        ("missing action", ACTION, BEFORE | LATER | {"fetch_last_epoch": {"r2": 1}}, False),
    ],
)
def test_an_epoch_between_the_last_record_and_the_fetch_is_difference_o(
    kind: str, action: str, before: dict[str, object], known: bool
) -> None:
    assert told(kind, before, action, GIVEN, TOLD).startswith("O:") == known


@pytest.mark.parametrize(
    "wrong",
    [
        ("fetch_offset[r2]", 0, 0),
        ("fetch_offset[r2]", 0, 2),
        ("high_watermark[r1]", 0, 1),
        ("follower_end[r1][r2]", 0, 0),
        ("fetch_last_epoch[r2]", 0, 2),
    ],
)
def test_another_answer_to_such_a_fetch_is_a_finding(wrong: Place) -> None:
    for kind, action in (("missing action", ACTION), ("unexpected action", "leader_answers_diverging")):
        places = [place for place in TOLD if place[0] != wrong[0]]
        assert not told(kind, BEFORE | LATER, action, GIVEN, [*places, wrong])


ENABLED: dict[str, object] = {
    "unclean_enabled": True,
    "replicas": ["r1", "r2"],
    "fenced": [],
    "controller_leader": "r1",
    "controller_isr": ["r1"],
    "controller_elr": [],
    "last_known_leader": None,
    "controller_epoch": 1,
    "controller_partition_epoch": 4,
}
LED_BY_NOBODY = ENABLED | {"controller_leader": None, "fenced": ["r1", "r2"]}
FENCES: dict[str, object] = {"r": "r1"}
SUCCEEDS = FENCES | {"successor": "r2"}


UNCLEAN: dict[str, list[Place]] = {
    "controller_fences_leader": [("controller_isr", NOTHING, ["r2"])],
    "controller_fences_last_leader": [
        ("controller_leader", None, "r2"),
        ("controller_isr", NOTHING, ["r2"]),
        ("controller_elr", ["r1"], NOTHING),
        ("last_known_leader", "r1", None),
    ],
    "controller_unfences": [
        ("controller_leader", None, "r2"),
        ("controller_isr", ["r1"], ["r2"]),
        ("controller_epoch", 1, 2),
        ("controller_partition_epoch", 4, 5),
    ],
}
"""What Kafka's own step comes to, beside what the model's action of that name does."""


@pytest.mark.parametrize(
    ("kind", "action", "before", "given", "known"),
    [
        ("missing action", "controller_fences_last_leader", ENABLED, FENCES, True),
        ("unexpected action", "controller_fences_leader", ENABLED, SUCCEEDS, True),
        ("missing action", "controller_unfences", LED_BY_NOBODY, {"r": "r2"}, True),
        ("missing action", "controller_fences_last_leader", ENABLED | {"unclean_enabled": False}, FENCES, False),
        ("missing action", "controller_fences_last_leader", ENABLED | {"fenced": ["r2"]}, FENCES, False),
        ("missing action", "controller_fences_last_leader", ENABLED | {"replicas": ["r1"]}, FENCES, False),
        ("missing action", "controller_fences_leader", ENABLED, SUCCEEDS, False),
        ("unexpected action", "controller_fences_leader", ENABLED | {"controller_leader": "r3"}, SUCCEEDS, False),
        ("unexpected action", "controller_fences_leader", ENABLED | {"controller_isr": ["r1", "r2"]}, SUCCEEDS, False),
        ("unexpected action", "controller_fences_leader", ENABLED | {"fenced": ["r2"]}, SUCCEEDS, False),
        ("unexpected action", "controller_fences_leader", ENABLED | {"unclean_enabled": False}, SUCCEEDS, False),
        ("missing action", "controller_unfences", LED_BY_NOBODY, {"r": "r1"}, False),
        ("missing action", "controller_unfences", ENABLED, {"r": "r2"}, False),
        ("missing action", "broker_shuts_down", ENABLED | {"controller_leader": None}, FENCES, True),
        ("missing action", "broker_shuts_down", ENABLED, FENCES, False),
        ("missing action", "broker_shuts_down", LED_BY_NOBODY, FENCES, False),
        ("unexpected action", "controller_fences_leader", ENABLED | {"controller_leader": None}, SUCCEEDS, True),
    ],
)
def test_an_election_in_the_step_that_leaves_nobody_else_is_difference_p(
    kind: str, action: str, before: dict[str, object], given: dict[str, object], known: bool
) -> None:
    waits = action == "broker_shuts_down"
    found = explain(kind, before, action, given, [], None if waits else UNCLEAN[action])
    assert found.startswith("P:") == known


@pytest.mark.parametrize("action", ["controller_fences_leader", "controller_fences_last_leader", "controller_unfences"])
@pytest.mark.parametrize(
    "wrong",
    [
        ("controller_isr", NOTHING, ["r1", "r2"]),
        ("controller_leader", None, "r1"),
        ("controller_leader", None, "r3"),
        ("controller_epoch", 1, 1),
        ("controller_elr", NOTHING, ["r1"]),
        ("acked", NOTHING, [0]),
    ],
)
def test_another_unclean_election_is_a_finding(action: str, wrong: Place) -> None:
    kind = "unexpected action" if action == "controller_fences_leader" else "missing action"
    before, given = (LED_BY_NOBODY, {"r": "r2"}) if action == "controller_unfences" else (ENABLED, SUCCEEDS)
    right = UNCLEAN[action]
    assert explain(kind, before, action, given, [], right).startswith("P:")
    assert not explain(kind, before, action, given, [], [*(place for place in right if place[0] != wrong[0]), wrong])
    assert not explain(kind, before, action, given, [])


RELIEVED: list[Place] = [("controller_leader", "r1", None), ("controller_epoch", 1, 2)]
DUE = ENABLED | {
    "replicas": ["r1", "r2", "r3"],
    "shutting_down": ["r1"],
    "adding": ["r1"],
    "removing": ["r3"],
    "controller_epoch": 1,
    "controller_partition_epoch": 4,
}
WITH_IT: list[Place] = [
    ("adding", ["r1"], []),
    ("removing", ["r3"], []),
    ("replicas", ["r1", "r2", "r3"], ["r1", "r2"]),
]


@pytest.mark.parametrize(
    ("before", "action", "places", "known"),
    [
        (DUE | {"adding": [], "removing": []}, "controller_starts_reassignment", RELIEVED, True),
        (DUE | {"adding": [], "removing": []}, "controller_learns_directory", RELIEVED, True),
        (DUE | {"adding": [], "removing": []}, "broker_restarts", RELIEVED, False),
        (DUE, "controller_learns_directory", [*RELIEVED, *WITH_IT], True),
        (DUE | {"adding": ["r2"]}, "controller_learns_directory", [*RELIEVED, *WITH_IT], False),
    ],
)
def test_only_a_registration_and_a_session_ask_whether_elections_may_be_unclean(
    before: dict[str, object], action: str, places: list[Place], known: bool
) -> None:
    assert explain(KIND, before, action, {"r": "r2"}, places).startswith("F:") == known


def test_a_reassignment_that_is_cancelled_and_could_be_complete_has_an_unclean_leader() -> None:
    cancels, before = "controller_cancels_reassignment", DUE | {"fenced": ["r2"]}
    own: list[Place] = [("controller_isr", ["r1"], ["r3"])]
    assert told("unexpected action", before, cancels, {"leader": "r3"}, own).startswith("F:")
    assert not told("unexpected action", before | {"unclean_enabled": False}, cancels, {"leader": "r3"}, own)
    assert not told("unexpected action", before, cancels, {"leader": "r3"}, [("controller_isr", ["r1"], ["r1", "r3"])])


def test_an_unclean_leader_comes_with_a_reassignment_that_is_complete() -> None:
    due = DUE | {"controller_isr": ["r1"], "controller_elr": ["r2"], "removing": []}
    places: list[Place] = [
        ("controller_leader", "r1", "r2"),
        ("controller_epoch", 1, 2),
        ("controller_isr", ["r1"], ["r2"]),
        ("controller_elr", ["r2"], []),
        ("adding", ["r1"], []),
    ]
    assert explain(KIND, due, "broker_restarts", {"r": "r3"}, places).startswith("F:")
    assert not explain(KIND, due | {"adding": ["r3"]}, "broker_restarts", {"r": "r3"}, places)


def test_a_leader_that_is_relieved_as_the_last_other_member_goes_has_an_unclean_successor() -> None:
    leaving = ENABLED | {"replicas": ["r1", "r2", "r3"], "controller_leader": "r3", "shutting_down": ["r3"]}
    two = leaving | {"controller_isr": ["r1", "r3"]}
    own: list[Place] = [("controller_isr", ["r3"], ["r2"])]
    assert told("unexpected action", two, "controller_fences_leader", SUCCEEDS, own).startswith("F:")
    assert not told(
        "unexpected action", two, "controller_fences_leader", SUCCEEDS, [("controller_isr", ["r3"], ["r1"])]
    )
    for other in ({"unclean_enabled": False}, {"controller_isr": ["r1", "r3"], "fenced": ["r2"]}, {"replicas": ["r1"]}):
        assert not told("unexpected action", two | other, "controller_fences_leader", SUCCEEDS, own)


STRUCK = ENABLED | {
    "replicas": ["r1", "r2", "r3"],
    "fenced": ["r1"],
    "controller_leader": None,
    "controller_epoch": 1,
    "controller_partition_epoch": 4,
}
ONE_LEADS: list[Place] = [
    ("controller_leader", None, "r2"),
    ("controller_isr", [], ["r2"]),
    ("controller_epoch", 1, 2),
    ("last_known_leader", "r1", None),
]


STRIKES: list[tuple[dict[str, object], list[Place], str]] = [
    (STRUCK, ONE_LEADS, "P"),
    (STRUCK | {"shutting_down": ["r3"], "controller_leader": "r3", "controller_isr": ["r3"]}, ONE_LEADS[:3], "F"),
    (STRUCK | {"unclean_enabled": False}, ONE_LEADS, ""),
    (STRUCK | {"fenced": ["r1", "r2"]}, ONE_LEADS, ""),
    (STRUCK | {"controller_leader": "r3"}, ONE_LEADS, ""),
    (STRUCK, ONE_LEADS[1:], ""),
    (STRUCK, [*ONE_LEADS[:2], ("controller_epoch", 1, 3)], ""),
    (STRUCK, [ONE_LEADS[0], ("controller_isr", [], ["r2", "r3"])], ""),
    (STRUCK, [*ONE_LEADS, ("committed", [0], [])], ""),
]


@pytest.mark.parametrize(("before", "places", "letter"), STRIKES)
def test_a_registration_that_strikes_the_last_brings_an_unclean_leader(
    before: dict[str, object], places: list[Place], letter: str
) -> None:
    assert explain(KIND, before, "broker_restarts", FENCES, places)[:1] == letter


HEARS = "leader_hears_known_version"
SET: dict[str, object] = {"minimum": 2, "own_minimum": {"r1": 1, "r2": 1}}
OWN: list[Place] = [("own_minimum[r1]", 1, 2)]


def test_a_minimum_that_comes_with_a_known_version_is_difference_i() -> None:
    assert explain(KIND, SET, HEARS, {"leader": "r1"}, OWN).startswith("I:")


@pytest.mark.parametrize(
    ("kind", "action", "before", "places"),
    [
        ("missing action", HEARS, SET, []),
        (KIND, "leader_appends", SET, OWN),
        (KIND, HEARS, SET, [("own_minimum[r2]", 1, 2)]),
        (KIND, HEARS, SET, [("own_minimum[r1]", 1, 3)]),
        (KIND, HEARS, SET, [*OWN, ("high_watermark[r1]", 0, 1)]),
        (KIND, HEARS, SET | {"own_minimum": {"r1": 2, "r2": 1}}, [("own_minimum[r1]", 2, 1)]),
        (KIND, HEARS, SET, []),
    ],
)
def test_whatever_else_comes_with_a_known_version_is_a_finding(
    kind: str, action: str, before: dict[str, object], places: list[Place]
) -> None:
    assert not explain(kind, before, action, {"leader": "r1"}, places)


KNOWN: dict[str, object] = {
    "ahead": ["r1", "r2"],
    "isr": {"r1": ["r1"], "r2": NOTHING},
    "own_minimum": {"r1": 1, "r2": 1},
    "follower_end": {"r1": {"r1": None, "r2": 0}},
    "log": {"r1": [0], "r2": NOTHING},
    "acked": NOTHING,
}
HEARD: list[Place] = [("ahead", ["r1", "r2"], ["r2"])]
FORGOTTEN: list[Place] = [*HEARD, ("pending_isr[r1]", ["r1", "r2"], [])]
ALONE: list[Place] = [*FORGOTTEN, ("high_watermark[r1]", 0, 1), ("acked", [], [0]), ("committed", [], [0])]


@pytest.mark.parametrize("places", [HEARD, FORGOTTEN, ALONE])
def test_a_version_that_comes_with_a_minimum_is_difference_i(places: list[Place]) -> None:
    assert explain(KIND, KNOWN, LEARNS, {"r": "r1"}, places).startswith("I:")


@pytest.mark.parametrize(
    ("kind", "before", "places"),
    [
        ("missing action", KNOWN, NOTHING),
        (KIND, KNOWN | {"ahead": ["r2"]}, [("ahead", ["r2"], NOTHING)]),
        (KIND, KNOWN, [("ahead", ["r1", "r2"], NOTHING)]),
        (KIND, KNOWN, FORGOTTEN[1:]),
        (KIND, KNOWN, [*HEARD, ("pending_isr[r2]", ["r1", "r2"], NOTHING)]),
        (KIND, KNOWN, [*HEARD, ("high_watermark[r1]", 0, 2)]),
        (KIND, KNOWN | {"isr": {"r1": ["r1", "r2"]}}, ALONE),
        (KIND, KNOWN | {"own_minimum": {"r1": 2, "r2": 1}}, ALONE),
        (KIND, KNOWN, [*FORGOTTEN, ("acked", NOTHING, [1])]),
    ],
)
def test_whatever_else_comes_with_a_minimum_is_a_finding(
    kind: str, before: dict[str, object], places: list[Place]
) -> None:
    assert not explain(kind, before, LEARNS, {"r": "r1"}, places)


EARLIER: dict[str, object] = BEFORE | {
    "leader": {"r1": "r1", "r2": "r1"},
    "leader_epoch": {"r1": 0, "r2": 1},
    "fetch_epoch": {"r1": 0, "r2": 0},
    "fetch_offset": {"r1": 0, "r2": 1},
    "log": {"r1": [0, 1], "r2": [0]},
    "high_watermark": {"r1": 1, "r2": 0},
    "follower_end": {"r1": {"r1": None, "r2": 1}},
}
RAISED: list[Place] = [("high_watermark[r2]", 0, 1)]
GROWN: list[Place] = [("log[r2]", [0], [0, 1]), *RAISED]
CUT: list[Place] = [("log[r2]", [0], NOTHING)]
DIVERGES = "leader_answers_diverging"


@pytest.mark.parametrize(("action", "places"), [(ACTION, RAISED), (ACTION, GROWN), (DIVERGES, CUT)])
def test_an_answer_of_an_earlier_epoch_that_is_taken_is_difference_q_of_one_release(
    action: str, places: list[Place]
) -> None:
    assert explain_in("4.0.0")(KIND, EARLIER, action, GIVEN, places, None).startswith("Q:")
    assert not explain_in("4.0.1")(KIND, EARLIER, action, GIVEN, places, None)
    assert not explain(KIND, EARLIER, action, GIVEN, places)


@pytest.mark.parametrize(
    ("kind", "action", "before", "places"),
    [
        ("missing action", ACTION, EARLIER, RAISED),
        (KIND, "follower_appends", EARLIER, RAISED),
        (KIND, ACTION, EARLIER | {"leader_epoch": {"r1": 0, "r2": 0}}, RAISED),
        (KIND, ACTION, EARLIER | {"leader": {"r1": "r1", "r2": "r3"}}, RAISED),
        (KIND, ACTION, EARLIER | {"fetch_offset": {"r1": 0, "r2": 0}}, RAISED),
        (KIND, ACTION, EARLIER, [("high_watermark[r2]", 0, 2)]),
        (KIND, ACTION, EARLIER, [("high_watermark[r1]", 0, 2)]),
        (KIND, ACTION, EARLIER, [("log[r2]", [0], [0, 2])]),
        (KIND, ACTION, EARLIER, CUT),
        (KIND, DIVERGES, EARLIER, GROWN),
        (KIND, DIVERGES, EARLIER, RAISED),
        (KIND, ACTION, EARLIER, [*RAISED, ("fetch[r2]", "none", "requested")]),
        (KIND, ACTION, EARLIER, NOTHING),
    ],
)
def test_whatever_else_becomes_of_an_earlier_answer_is_a_finding(
    kind: str, action: str, before: dict[str, object], places: list[Place]
) -> None:
    given = GIVEN if action != "follower_appends" else {"follower": "r2"}
    assert not explain_in("4.0.0")(kind, before, action, given, places, None)


REGISTERS: dict[str, object] = {
    "controller_leader": None,
    "controller_isr": NOTHING,
    "controller_elr": ["r1"],
    "last_known_leader": "r1",
    "controller_epoch": 1,
    "controller_partition_epoch": 2,
    "fenced": ["r1"],
    "replicas": ["r1", "r2"],
}
LEADS_ABSENT: list[Place] = [
    ("controller_leader", None, "r1"),
    ("controller_epoch", 1, 2),
    ("controller_isr", NOTHING, ["r1"]),
    ("last_known_leader", "r1", None),
]


@pytest.mark.parametrize(
    ("release", "known"), [("4.0.0", "R"), ("4.0.1", "R"), ("4.0.2", "R"), ("4.1.0", ""), ("", "")]
)
@pytest.mark.parametrize("who", [{}, {"controller_isr": ["r1"], "controller_elr": NOTHING}])
def test_a_last_known_leader_that_is_elected_while_it_registers_is_difference_r_of_4_0(
    who: dict[str, object], release: str, known: str
) -> None:
    explained = explain_in(release)(KIND, REGISTERS | who, "broker_restarts", {"r": "r1"}, LEADS_ABSENT, None)
    assert explained[:1] == known


def test_difference_r_is_asked_of_designs_with_fewer_variables() -> None:
    fixed = {name: value for name, value in REGISTERS.items() if name != "replicas"}
    assert explain_in("4.0.2")(KIND, fixed, "broker_restarts", {"r": "r1"}, LEADS_ABSENT, None).startswith("R:")
    without = {"controller_leader": None, "controller_isr": ["r1"], "fenced": ["r1"], "controller_epoch": 1}
    without |= {"controller_partition_epoch": 2}
    assert not explain_in("4.0.2")(KIND, without, "broker_restarts", {"r": "r1"}, LEADS_ABSENT, None)


@pytest.mark.parametrize("fenced", [["r1", "r2"], ["r1"]])
def test_only_who_may_not_lead_is_elected_so_by_difference_r(fenced: list[str]) -> None:
    places = [(place, model, "r2" if kafka == "r1" else kafka) for place, model, kafka in LEADS_ABSENT]
    places[2:] = [("controller_isr", NOTHING, ["r2"]), ("last_known_leader", "r2", None)]
    state = REGISTERS | {"last_known_leader": "r2", "fenced": fenced}
    explained = explain_in("4.0.2")(KIND, state, "broker_restarts", {"r": "r1"}, places, None)
    assert explained.startswith("R:") == ("r2" in fenced)


@pytest.mark.parametrize(
    ("kind", "action", "before", "places"),
    [
        ("missing action", "broker_restarts", REGISTERS, LEADS_ABSENT),
        (KIND, "controller_fences_outsider", REGISTERS, LEADS_ABSENT),
        (KIND, "broker_restarts", REGISTERS | {"controller_leader": "r2"}, LEADS_ABSENT),
        (KIND, "broker_restarts", REGISTERS | {"controller_elr": ["r1", "r2"]}, LEADS_ABSENT),
        (KIND, "broker_restarts", REGISTERS | {"controller_elr": NOTHING}, LEADS_ABSENT),
        (KIND, "broker_restarts", REGISTERS | {"last_known_leader": None}, LEADS_ABSENT),
        (KIND, "broker_restarts", REGISTERS | {"last_known_leader": "r2"}, LEADS_ABSENT),
        (KIND, "broker_restarts", REGISTERS | {"replicas": ["r2"]}, LEADS_ABSENT),
        (KIND, "broker_restarts", REGISTERS, LEADS_ABSENT[1:]),
        (KIND, "broker_restarts", REGISTERS, [*LEADS_ABSENT[:1], ("controller_epoch", 1, 3), *LEADS_ABSENT[2:]]),
        (KIND, "broker_restarts", REGISTERS, [*LEADS_ABSENT, ("fenced", ["r1"], NOTHING)]),
        (KIND, "broker_restarts", REGISTERS, [*LEADS_ABSENT, ("log[r1]", [0], NOTHING)]),
    ],
)
def test_whatever_else_becomes_of_such_a_registration_is_a_finding(
    kind: str, action: str, before: dict[str, object], places: list[Place]
) -> None:
    assert not explain_in("4.0.2")(kind, before, action, {"r": "r1"}, places, None)


def test_what_all_releases_have_the_one_with_a_difference_of_its_own_has_too() -> None:
    other = BEFORE | {
        "leader": {"r1": "r1", "r2": "r1"},
        "leader_epoch": {"r1": 0, "r2": 1},
        "log": {"r1": [0], "r2": [0]},
    }
    assert explain_in("4.0.0")(KIND, other, ACTION, GIVEN, PLACES, None).startswith("D:")


HEARS_OLD, SETS_OLD = "leader_hears_known_version_of_old_image", "broker_learns_old_minimum"
LATE: dict[str, object] = {
    "own_minimum": {"r1": 1, "r2": 1},
    "minimum": 1,
    "image_minimum": 2,
    "replicas": ["r1"],
    "image_replicas": ["r1", "r2"],
    "ahead": ["r1"],
    "isr": {"r1": ["r1"], "r2": []},
    "follower_end": {"r1": {"r1": None, "r2": None}, "r2": {"r1": None, "r2": None}},
    "log": {"r1": [], "r2": []},
    "high_watermark": {"r1": 0, "r2": 0},
    "acked": [],
    "committed": [],
}
"""The image has a minimum of 2; by now it is 1 again."""


def test_of_an_old_image_difference_i_goes_by_the_numbers_of_the_image() -> None:
    brings: list[Place] = [("own_minimum[r1]", 1, 2)]
    assert explain(KIND, LATE, HEARS_OLD, {"leader": "r1"}, brings).startswith("I:")
    assert not explain(KIND, LATE, "leader_hears_known_version", {"leader": "r1"}, brings)
    assert not explain(KIND, LATE, HEARS_OLD, {"leader": "r1"}, [("own_minimum[r1]", 1, 1)])
    known: list[Place] = [("ahead", ["r1"], []), ("pending_isr[r1]", ["r1", "r2"], [])]
    assert explain(KIND, LATE, SETS_OLD, {"r": "r1"}, known).startswith("I:")
    assert not explain(KIND, LATE, SETS_OLD, {"r": "r1"}, [*known, ("leader[r1]", "r1", "r2")])


def test_of_an_old_image_difference_j_goes_by_the_replicas_of_the_image() -> None:
    assert not explain("missing action", LATE, SETS_OLD, {"r": "r2"}, [])
    assert explain("missing action", LATE | {"image_replicas": ["r1"]}, SETS_OLD, {"r": "r2"}, []).startswith("J:")


def test_a_snapshot_brings_the_settings_before_its_version_which_is_difference_i() -> None:
    state = LATE | {"minimum": 2}
    assert explain(KIND, state, "leader_loads_snapshot", {"leader": "r1"}, [("own_minimum[r1]", 1, 2)]).startswith("I:")
    assert not explain(KIND, state, "leader_loads_snapshot", {"leader": "r1"}, [("isr[r1]", ["r1"], ["r1", "r2"])])


def test_old_news_have_the_names_of_the_model() -> None:
    assert OLD_NEWS.items() <= {old: newest for newest, old in NEWS.items()}.items()
    assert set(IMAGE) == {f"image_{newest}" for newest in IMAGE.values()}
