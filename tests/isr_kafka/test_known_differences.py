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
