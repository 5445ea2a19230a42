"""A difference is known only if it is that one to the last value."""

import pytest

from isr_kafka.known_differences import Place, explain

BEFORE: dict[str, object] = {
    "follower_end": {"r1": {"r1": None, "r2": 1}, "r2": {"r1": None, "r2": None}},
    "fetch_offset": {"r1": 0, "r2": 1},
    "high_watermark": {"r1": 0, "r2": 0},
    "acked": [],
    "committed": [],
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
}
NOBODY: list[Place] = [
    ("controller_leader", "r1", None),
    ("controller_epoch", 0, 1),
    ("last_known_leader", None, "r1"),
]
NOTHING: list[object] = []
UNNAMED: dict[str, object] = {}
ANOTHER: list[Place] = [("controller_leader", "r1", "r2"), ("controller_epoch", 0, 1)]
STARTS, AT_ONCE = "controller_starts_reassignment", "controller_reassigns_at_once"


def test_a_leader_that_is_shutting_down_and_loses_leadership_where_somebody_reassigns_is_difference_f() -> None:
    target = {"target": ["r1", "r2"]}
    assert explain(KIND, LEAVING, STARTS, target, NOBODY).startswith("F:")
    assert explain(KIND, LEAVING | {"controller_isr": ["r1", "r2"]}, STARTS, target, ANOTHER).startswith("F:")
    assert explain("missing action", LEAVING, AT_ONCE, {"target": ["r1"], "leader": "r1"}, []).startswith("F:")


TELLS, FENCES_LAST = "controller_learns_directory", "controller_fences_last_leader"
BOTH = LEAVING | {"controller_isr": ["r1", "r2"], "shutting_down": ["r1", "r2"]}


@pytest.mark.parametrize(
    ("kind", "action", "before", "r", "places"),
    [
        (KIND, "broker_restarts", LEAVING | {"elsewhere": ["r2"]}, "r2", NOBODY),
        (KIND, TELLS, LEAVING | {"elsewhere": ["r2"]}, "r2", NOBODY[:2]),
        ("unexpected action", TELLS, LEAVING, "r1", []),
        ("missing action", "controller_fences_follower", BOTH, "r2", []),
        ("unexpected action", FENCES_LAST, BOTH, "r2", []),
        (KIND, FENCES_LAST, BOTH, "r1", [NOBODY[2]]),
    ],
)
def test_so_is_any_other_change_of_its_partition(
    kind: str, action: str, before: dict[str, object], r: str, places: list[Place]
) -> None:
    assert explain(kind, before, action, {"r": r}, places).startswith("F:")
    assert not explain(kind, before | {"shutting_down": ["r2"]}, action, {"r": r}, places)


@pytest.mark.parametrize(
    ("kind", "action", "before", "parameters", "places"),
    [
        (KIND, TELLS, LEAVING, {"r": "r2"}, ANOTHER),
        (KIND, TELLS, LEAVING | {"controller_isr": ["r1", "r2"]}, {"r": "r2"}, NOBODY[:2]),
        (KIND, TELLS, LEAVING | {"controller_isr": ["r1", "r2"], "elsewhere": ["r2"]}, {"r": "r2"}, ANOTHER),
        ("unexpected action", TELLS, LEAVING, {"r": "r2"}, []),
        ("missing action", "controller_fences_follower", BOTH, {"r": "r1"}, []),
        ("unexpected action", FENCES_LAST, BOTH, {"r": "r1"}, []),
        ("unexpected action", FENCES_LAST, BOTH | {"controller_isr": ["r1", "r2", "r3"]}, {"r": "r2"}, []),
        (KIND, FENCES_LAST, BOTH, {"r": "r2"}, [NOBODY[2]]),
        (KIND, FENCES_LAST, BOTH, {"r": "r1"}, [("last_known_leader", None, "r2")]),
        (KIND, STARTS, LEAVING | {"shutting_down": NOTHING}, UNNAMED, NOBODY),
        (KIND, STARTS, LEAVING, UNNAMED, ANOTHER),
        (KIND, STARTS, LEAVING | {"controller_isr": ["r1", "r2"]}, UNNAMED, NOBODY),
        (KIND, STARTS, LEAVING | {"controller_isr": ["r1", "r2"], "fenced": ["r2"]}, UNNAMED, ANOTHER),
        (KIND, STARTS, LEAVING, UNNAMED, [*NOBODY, ("controller_isr", ["r1"], NOTHING)]),
        (KIND, STARTS, LEAVING, UNNAMED, [NOBODY[0], ("controller_epoch", 0, 2), NOBODY[2]]),
        (KIND, STARTS, LEAVING, UNNAMED, [NOBODY[2]]),
        (KIND, AT_ONCE, LEAVING, {"leader": "r1"}, NOBODY),
        (KIND, "controller_sets_minimum", LEAVING, UNNAMED, NOBODY),
        ("missing action", STARTS, LEAVING, UNNAMED, []),
        ("missing action", AT_ONCE, LEAVING, {"leader": "r2"}, []),
        ("missing action", AT_ONCE, LEAVING | {"shutting_down": ["r2"]}, {"leader": "r1"}, []),
        ("unexpected action", AT_ONCE, LEAVING, {"leader": "r1"}, []),
    ],
)
def test_whatever_else_a_leader_that_is_shutting_down_does_is_a_finding(
    kind: str, action: str, before: dict[str, object], parameters: dict[str, object], places: list[Place]
) -> None:
    assert not explain(kind, before, action, parameters, places)


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


LEARNS = "broker_learns_minimum"
KNOWN: dict[str, object] = {"ahead": ["r1", "r2"]}
HEARD: list[Place] = [("ahead", ["r1", "r2"], ["r2"])]
FORGOTTEN: list[Place] = [*HEARD, ("pending_isr[r1]", ["r1", "r2"], [])]


@pytest.mark.parametrize("places", [HEARD, FORGOTTEN])
def test_a_version_that_comes_with_a_minimum_is_difference_i(places: list[Place]) -> None:
    assert explain(KIND, KNOWN, LEARNS, {"r": "r1"}, places).startswith("I:")


@pytest.mark.parametrize(
    ("kind", "before", "places"),
    [
        ("missing action", KNOWN, NOTHING),
        (KIND, {"ahead": ["r2"]}, [("ahead", ["r2"], NOTHING)]),
        (KIND, KNOWN, [("ahead", ["r1", "r2"], NOTHING)]),
        (KIND, KNOWN, FORGOTTEN[1:]),
        (KIND, KNOWN, [*HEARD, ("pending_isr[r2]", ["r1", "r2"], NOTHING)]),
        (KIND, KNOWN, [*HEARD, ("high_watermark[r1]", 0, 1)]),
    ],
)
def test_whatever_else_comes_with_a_minimum_is_a_finding(
    kind: str, before: dict[str, object], places: list[Place]
) -> None:
    assert not explain(kind, before, LEARNS, {"r": "r1"}, places)
