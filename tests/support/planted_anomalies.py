"""A history for each anomaly, one that is permitted by its claims, and a near miss without the anomaly."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.histories import Story

COMMITTED = {"isolation": "read_committed"}

Case = tuple[str, Callable[[], Story], set[str]]
"""The anomaly, its history, and what else that history logically has to show."""

PLANTED: list[Case] = [
    (
        "inconsistent-offset",
        lambda: Story().send(1, 0, by="a").poll([0, 1], by="c").poll([0, 9], by="d").send(9, kind="info"),
        {"late-ghost"},
    ),
    (
        "duplicate",
        lambda: Story().sends((1, 0), (2, 1)).poll([0, 1], [1, 2]).poll([2, 1], by="d").final({0: 1, 1: 2, 2: 1}),
        set(),
    ),
    ("lost-write", lambda: Story().sends((1, 0), (2, 1), (3, 2)).final({0: 1, 2: 3}), {"unseen", "offset-gap"}),
    (  # a reader saw it, and another record is there now
        "lost-write",
        lambda: Story().send(1, 0).send(2, 1).poll([0, 1], [1, 2]).send(3, 1).final({0: 1, 1: 3}),
        {"read-then-lost", "inconsistent-offset", "stale-ack-offset"},
    ),
    (  # with acks=1, but what was read is below the high watermark
        "lost-write",
        lambda: Story(acks="1").sends((1, 0), (2, 1)).poll([0, 1], [1, 2]).final({0: 1}),
        {"read-then-lost"},
    ),
    ("lost-write", lambda: Story().send(1).final({}), {"unseen"}),  # nobody was told where it is
    ("unseen", lambda: Story().sends((1, 0), (2, 1)).final({0: 1}), {"lost-write"}),
    ("aborted-read", lambda: Story().send(1, kind="fail").poll([0, 1]).final({0: 1}), set()),
    (
        "precommitted-read",
        lambda: (
            Story(**COMMITTED)
            .txn([["send", "t-0", 1], ["poll"]], [["send", "t-0", 1, 0], ["poll", {"t-0": [[0, 1]]}]])
            .final({0: 1}, unseen=[])
        ),
        set(),
    ),
    (
        "poll-skip",
        lambda: Story().sends((1, 0), (2, 1), (3, 2)).poll([0, 1]).poll([2, 3]).final({0: 1, 1: 2, 2: 3}),
        set(),
    ),
    (
        "nonmonotonic-poll",
        lambda: Story().sends((1, 0), (2, 1)).poll([0, 1], [1, 2]).poll([1, 2]).final({0: 1, 1: 2}),
        set(),
    ),
    (
        "int-poll-skip",
        lambda: Story().sends((1, 0), (2, 1), (3, 2)).poll([0, 1], [2, 3]).final({0: 1, 1: 2, 2: 3}),
        set(),
    ),
    (
        "int-nonmonotonic-poll",
        lambda: Story().sends((1, 0), (2, 1)).poll([0, 1], [0, 1], [1, 2]).final({0: 1, 1: 2}),
        set(),
    ),
    ("nonmonotonic-send", lambda: reordered(), set()),
    (
        "int-nonmonotonic-send",
        lambda: (
            Story()
            .txn([["send", "t-0", 1], ["send", "t-0", 2]], [["send", "t-0", 1, 1], ["send", "t-0", 2, 0]])
            .final({0: 2, 1: 1}, unseen=[])
        ),
        set(),
    ),
    ("consume-counts", lambda: subscribers(exactly_once=True), set()),
    ("realtime-lag", lambda: lagging(max_lag=3_000_000_000), set()),
    ("stale-ack-offset", lambda: stale(), set()),
    ("stale-ack-offset", lambda: Story().send(1, 0, by="a").send(2, 0, by="b"), {"inconsistent-offset"}),
    ("lost-write", lambda: half_a_transaction(), set()),
    ("acks-contract", lambda: cut_before_the_ack(), set()),
    (
        "replica-divergence",
        lambda: Story().dump("n1", {0: 1}, hw=1, epochs=[[1, 0]]).dump("n2", {0: 1}, hw=1, epochs=[[0, 0]]),
        set(),
    ),
    ("truncation-unnoticed", lambda: Story().sends((1, 0), (2, 1)).poll([0, 1, 2]).poll([1, 2, 1]), set()),
    (
        "late-ghost",
        lambda: Story().sends((1, 1)).send(5, by="q", kind="info").poll([0, 5], [1, 1]).final({0: 5, 1: 1}),
        set(),
    ),
    ("phantom", lambda: Story().send(1, 0).poll([0, 1], [1, 7]).final({0: 1, 1: 7}), set()),
    (
        "read-then-lost",
        lambda: Story().send(1, 0).send(2, kind="info").poll([0, 1], [1, 2]).final({0: 1}),
        {"lost-write"},
    ),
    (  # it was away for a while: a later poll got it, so it is not lost
        "read-then-lost",
        lambda: Story().send(1, 0).poll([0, 1]).final({}).poll([0, 1], by="d"),
        set(),
    ),
    (
        "ack-then-gone",
        lambda: (
            Story().sends((1, 0), (2, 1)).final({0: 1}).dump("n1", {0: 1}, hw=1, leader=True).dump("n2", {0: 1}, hw=1)
        ),
        {"lost-write", "unseen"},
    ),
    (
        "replica-divergence",
        lambda: Story().send(1, 0).final({0: 1}).dump("n1", {0: 1}, hw=1).dump("n2", {0: 2}, hw=1),
        set(),
    ),
    ("offset-gap", lambda: Story().sends((1, 0), (2, 2)).final({0: 1, 2: 2}), set()),
    ("truncation-unnoticed", lambda: truncated(told=False), set()),
    ("acks-contract", lambda: Story(min_insync=2).holds("n1", (1, 0)).send(1, 0).final({0: 1}), set()),
    (
        "no-progress",
        lambda: (
            Story(progress_within=5_000_000_000).send(1, 0).fault().heal().send(2, kind="fail").wait(5).final({0: 1})
        ),
        set(),
    ),
    (
        "unavailability",
        lambda: Story(max_unavailable=8_000_000_000).send(1, 0).wait(8).send(2, 1).final({0: 1, 1: 2}),
        set(),
    ),
    ("read-write-cycle", lambda: crossing(isolation="read_committed"), set()),
]
"""An error each; what is only ever permitted follows below."""

PERMITTED: list[Case] = [
    ("int-send-skip", lambda: interrupted(), set()),
    ("write-cycle", lambda: two_writers(), set()),
    ("ordered-cycle", lambda: stale(), {"stale-ack-offset"}),
    ("duplicate", lambda: Story(idempotence=False).send(1, 0).poll([0, 1], [1, 1]), set()),
    ("duplicate", lambda: Story().send(1, kind="info").send(1, 1).poll([0, 1], [1, 1]), set()),
    ("lost-write", lambda: Story(acks="1").sends((1, 0), (2, 1)).final({1: 2}, unseen=[0]), set()),
    ("lost-write", lambda: Story().send(1, 0, acks=1).send(2, 1).final({1: 2}, unseen=[0]), set()),
    (
        "precommitted-read",
        lambda: Story().txn([["send", "t-0", 1], ["poll"]], [["send", "t-0", 1, 0], ["poll", {"t-0": [[0, 1]]}]]),
        set(),
    ),
    (
        "poll-skip",
        lambda: Story().sends((1, 0), (2, 1), (3, 2)).assign("t-0", f="subscribe").poll([0, 1]).poll([2, 3]),
        set(),
    ),
    ("consume-counts", lambda: subscribers(), set()),
    ("read-write-cycle", lambda: crossing(), set()),
    (
        "read-then-lost",
        lambda: Story(unclean=True).send(1, 0).send(2, kind="info").poll([0, 1], [1, 2]).final({0: 1}),
        set(),
    ),
]

NEAR_MISSES: list[tuple[str, Callable[[], Story]]] = [
    ("inconsistent-offset", lambda: Story().send(1, 0).send(2, 0, p="t-1").poll([0, 1])),
    ("inconsistent-offset", lambda: Story().send(1, 0).send(2, 0, by="q", kind="info")),  # unread, so never proved
    ("duplicate", lambda: Story().send(1, 0).send(1, 0, p="t-1").poll([0, 1]).poll([0, 1], by="d")),
    ("lost-write", lambda: Story().sends((1, 0), (2, 1)).send(3, kind="info").final({0: 1, 1: 2})),
    ("lost-write", lambda: Story().sends((1, 0), (2, 1)).poll([0, 1]).final({0: 1, 1: 2}).send(3, 2)),
    ("lost-write", lambda: Story().sends((1, 0), (2, 1)).poll([0, 1], [1, 2]).final({1: 2}, start=1)),  # retention
    ("lost-write", lambda: Story().send(1, kind="fail").poll(kind="fail").final({})),  # surely not done
    ("unseen", lambda: Story().send(1, 0).final({0: 1}).send(2, 1)),  # acknowledged after the last read began
    ("aborted-read", lambda: Story().send(1, kind="info").poll([0, 1])),
    ("aborted-read", lambda: Story().send(1, kind="fail").send(1, 0).poll([0, 1])),  # sent again
    (
        "precommitted-read",
        lambda: (
            Story(**COMMITTED)
            .txn([["send", "t-0", 1], ["poll"]], [["send", "t-0", 1, 0], ["poll", {"t-1": []}]])
            .poll([0, 1])
        ),
    ),
    (
        "poll-skip",
        lambda: (
            Story().sends((1, 0), (2, 1), (3, 2)).assign("t-0").poll([0, 1]).assign("t-1").assign("t-0").poll([2, 3])
        ),
    ),
    ("poll-skip", lambda: Story().sends((1, 0), (3, 2)).poll([0, 1]).poll([2, 3])),  # a control record may be at 1
    (
        "poll-skip",
        lambda: Story().sends((1, 0), (2, 1), (3, 2)).poll([0, 1]).poll([1, 2], kind="info").poll([1, 2], [2, 3]),
    ),
    ("nonmonotonic-poll", lambda: Story().sends((1, 0), (2, 1)).poll([0, 1]).poll([1, 2], kind="fail").poll([1, 2])),
    ("nonmonotonic-poll", lambda: Story().sends((1, 0)).poll([0, 1]).assign("t-0", seek="beginning").poll([0, 1])),
    ("int-poll-skip", lambda: Story().sends((1, 0), (2, 1), (3, 2)).poll([0, 1], [2, 3], rebalanced=["t-0"])),
    ("int-nonmonotonic-poll", lambda: Story().sends((1, 0), (2, 1)).poll([0, 1], [1, 2])),
    ("int-nonmonotonic-poll", lambda: Story().sends((1, 0), (2, 1)).poll([1, 2], [0, 1], rebalanced=["t-0"])),
    ("nonmonotonic-send", lambda: reordered(idempotence=False)),
    ("nonmonotonic-send", lambda: Story().send(1, 1, by="a").send(2, 0, p="t-1", by="a")),
    (
        "int-nonmonotonic-send",
        lambda: Story().txn([["send", "t-0", 1], ["send", "t-1", 2]], [["send", "t-0", 1, 1], ["send", "t-1", 2, 0]]),
    ),
    (
        "int-send-skip",
        lambda: Story().txn([["send", "t-0", 1], ["send", "t-0", 2]], [["send", "t-0", 1, 0], ["send", "t-0", 2, 2]]),
    ),
    ("write-cycle", lambda: two_writers(crossed=False)),
    ("read-write-cycle", lambda: crossing(both=False, isolation="read_committed")),
    ("ordered-cycle", lambda: Story().sends((1, 0), (2, 1)).poll([0, 1], [1, 2]).send(3, 2)),
    ("ordered-cycle", lambda: reordered(idempotence=False)),  # in flight together, so in no order
    ("consume-counts", lambda: subscribers(groups=("g", "h"), exactly_once=True)),
    ("realtime-lag", lambda: lagging(max_lag=9_000_000_000)),
    ("stale-ack-offset", lambda: stale(overlapping=True)),
    ("late-ghost", lambda: Story().send(1, 0).send(5, by="q", kind="info").send(2, 2).poll([0, 1], [1, 5], [2, 2])),
    ("late-ghost", lambda: Story().send(1, 1).send(5, by="q", kind="info")),  # never seen
    ("phantom", lambda: Story().send(1, kind="info").poll([0, 1])),
    ("read-then-lost", lambda: Story().send(1, 0).send(2, kind="info").final({0: 1}).poll([0, 1], [1, 2])),
    (
        "ack-then-gone",
        lambda: Story().send(1, 0).final({0: 1}).dump("n1", {0: 1}, hw=1).dump("n2", {}, hw=1, in_sync=False),
    ),
    ("replica-divergence", lambda: Story().send(1, 0).dump("n1", {0: 1, 1: 2}, hw=1).dump("n2", {0: 1, 1: 3}, hw=1)),
    ("replica-divergence", lambda: Story().send(1, 0).dump("n1", {0: 1}, hw=1).dump("n2", {0: 2}, hw=1, in_sync=False)),
    ("offset-gap", lambda: Story().sends((1, 0), (2, 2)).final({0: 1, 2: 2}, unseen=[1])),
    ("offset-gap", lambda: Story().sends((1, 5)).final({5: 1}, start=5)),
    ("truncation-unnoticed", lambda: truncated(told=True)),
    ("truncation-unnoticed", lambda: Story().sends((1, 0), (2, 1)).poll([0, 1, 1]).poll([1, 2, 2])),
    ("acks-contract", lambda: Story(min_insync=2).holds("n1", (1, 0)).holds("n2", (1, 0)).send(1, 0)),
    ("acks-contract", lambda: Story(min_insync=2).holds("n1", (1, 0)).send(1, 0, acks=1)),
    (
        "no-progress",
        lambda: Story(progress_within=5_000_000_000).send(1, 0).fault().heal().send(2, 1).wait(5).poll([0, 1]),
    ),
    (
        "no-progress",
        lambda: Story(progress_within=5_000_000_000).send(1, 0).fault().heal().wait(9).poll([0, 1]),
    ),  # unasked
    ("unavailability", lambda: Story(max_unavailable=9_000_000_000).send(1, 0).wait(5).send(2, 1)),
]


def reordered(*, idempotence: bool = True) -> Story:
    """Two sends in flight together, appended in the other order."""
    story = Story(idempotence=idempotence)
    story.begin("produce", "a", partition="t-0", value=1, id=1)
    story.begin("produce", "a", partition="t-0", value=2, id=2)
    story.end("produce", "a", offset=1, id=1)
    story.end("produce", "a", offset=0, id=2)
    return story.final({0: 2, 1: 1})


def stale(*, overlapping: bool = False) -> Story:
    """An offset is acknowledged below one that was acknowledged before it was sent, or meanwhile."""
    story = Story()
    if overlapping:
        story.begin("produce", "b", partition="t-0", value=2)
    story.send(1, 1, by="a")
    if not overlapping:
        story.begin("produce", "b", partition="t-0", value=2)
    story.end("produce", "b", offset=0)
    return story.final({0: 2, 1: 1})


def subscribers(groups: tuple[str, str] = ("g", "g"), **claims: object) -> Story:
    """Two consumers get the same record."""
    story = Story(**claims).send(1, 0).assign("t-0", by="c", f="subscribe").assign("t-0", by="d", f="subscribe")
    return story.poll([0, 1], by="c", group=groups[0]).poll([0, 1], by="d", group=groups[1]).final({0: 1})


def lagging(**limit: object) -> Story:
    """A consumer has read offset 0, and offset 1 has been there for five seconds when it polls again in vain."""
    return Story(**limit).send(1, 0).poll([0, 1]).send(2, 1).wait(4).poll().poll([1, 2]).final({0: 1, 1: 2})


def truncated(*, told: bool) -> Story:
    """A consumer has offset 1 of epoch 1 when epoch 2 begins at offset 1; it may be told to look again."""
    story = Story().send(1, 0).send(2, by="q", kind="info").poll([0, 1, 1], [1, 2, 1], by="c").send(3, 2)
    story.dump("n1", {}, hw=3, epochs=[[1, 0], [2, 1]])
    return story.poll([2, 3, 2], by="c", diverged=["t-0"] if told else [])


def crossing(*, both: bool = True, **claims: object) -> Story:
    """Two transactions at once; each reads what the other one sends, or only one does."""
    story = Story(**claims)
    story.begin("txn", "x", ops=[["send", "t-0", 1], ["poll"]])
    story.begin("txn", "y", ops=[["send", "t-1", 2], ["poll"]])
    story.end("txn", "x", ops=[["send", "t-0", 1, 0], ["poll", {"t-1": [[0, 2]]}]])
    story.end("txn", "y", ops=[["send", "t-1", 2, 0], ["poll", {"t-0": [[0, 1]]} if both else {}]])
    return story


def half_a_transaction() -> Story:
    """Of a transaction of unknown outcome one send is read, so it was done; the other one is nowhere."""
    story = Story()
    story.begin("txn", "x", ops=[["send", "t-0", 1], ["send", "t-1", 2]])
    story.end("txn", "x", "info", ops=[["send", "t-0", 1, 0], ["send", "t-1", 2, 0]])
    return story.send(3, 1, p="t-1").final({0: 1}, unseen=[]).final({1: 3}, p="t-1", unseen=[0])


def cut_before_the_ack() -> Story:
    """Both nodes had it, but one of them cut its log before it was acknowledged."""
    story = Story(min_insync=2).holds("n1", (1, 0)).holds("n2", (1, 0))
    story.line(f="truncate", node="n2", partition="t-0", offset=0)
    return story.send(1, 0)


def interrupted() -> Story:
    """While an operation sends twice, somebody else's record comes between."""
    story = Story()
    story.begin("txn", "x", ops=[["send", "t-0", 1], ["send", "t-0", 2]])
    story.send(9, 1, by="q")
    story.end("txn", "x", ops=[["send", "t-0", 1, 0], ["send", "t-0", 2, 2]])
    return story


def two_writers(*, crossed: bool = True) -> Story:
    """Two operations send to two partitions; one comes first in both, or each in one."""
    story = Story()
    story.begin("txn", "x", ops=[["send", "t-0", 1], ["send", "t-1", 1]])
    story.begin("txn", "y", ops=[["send", "t-0", 2], ["send", "t-1", 2]])
    first, second = (1, 0) if crossed else (0, 1)
    story.end("txn", "x", ops=[["send", "t-0", 1, 0], ["send", "t-1", 1, first]])
    story.end("txn", "y", ops=[["send", "t-0", 2, 1], ["send", "t-1", 2, second]])
    return story


ALLOWED = {"nonmonotonic-send"}
"""Near misses that are seen, but allowed by the claims of that history."""


def half_below_the_start() -> Story:
    """A transaction of unknown outcome is proved by a read in one partition; that of the other one begins above 0."""
    sends: list[list[object]] = [["send", "t-0", 1], ["send", "t-1", 2]]
    story = Story().txn(sends, sends, kind="info").poll([0, 1]).send(3, 1, p="t-1")
    return story.final({0: 1}, unseen=[]).final({1: 3}, p="t-1", start=1, unseen=[])


NOTHING_SHOWN: list[Story] = [
    Story().send(1, kind="fail").poll(),
    Story().send(1, kind="info"),
    Story().send(1, kind="info").send(2, kind="info").poll().final({}),
    Story().final({}),
    Story().final({}, 7, start=7),
    Story(max_lag=1).assign("t-0", seek="beginning").poll().poll(),
    Story().assign("t-0", f="subscribe").poll(kind="fail"),
    Story().txn([["send", "t-0", 1], ["send", "t-1", 2]], [["send", "t-0", 1], ["send", "t-1", 2]], kind="fail"),
    Story().txn([["send", "t-0", 1], ["send", "t-0", 2]], [["send", "t-0", 1], ["send", "t-0", 2]], kind="info"),
    Story().txn([["poll"], ["poll"]], [["poll", {"t-0": []}], ["poll", {"t-1": []}]]),
    Story().txn([["send", "t-0", 1], ["poll"]], [["send", "t-0", 1], ["poll", {"t-0": []}]], kind="fail"),
    Story().dump("n1", {}, hw=0).dump("n2", {}, hw=0),
    Story().dump("n1", {0: 1}, hw=0).dump("n2", {0: 2}, hw=0),
    Story(min_insync=2).holds("n1", (1, 0)).holds("n2", (1, 0)),
]
"""No node acknowledged anything, nobody read anything, and no replica showed what it has committed."""

BELOW: list[tuple[Story, tuple[str, str, str]]] = [
    # nobody read offset 0, and the final read does not look there
    (Story().sends((1, 0), (2, 1)).final({1: 2}, start=1), ("UNKNOWN", "UNKNOWN", "VACUOUS")),
    # both were read before the final read of nothing
    (
        Story().sends((1, 0), (2, 1)).poll([0, 1], [1, 2]).final({}, 2, start=2),
        ("UNKNOWN", "HOLDS", "UNKNOWN"),
    ),
    (Story().sends((1, 0), (2, 1)).poll([0, 1], [1, 2]).final({1: 2}, start=1), ("UNKNOWN", "HOLDS", "UNKNOWN")),
    (
        Story().send(1, 0).send(2, kind="info").poll([0, 1], [1, 2]).final({}, 2, start=2),
        ("UNKNOWN", "HOLDS", "UNKNOWN"),
    ),
    (Story().send(1).sends((2, 1)).final({1: 2}, start=1), ("UNKNOWN", "UNKNOWN", "VACUOUS")),  # it may be at 0
    # an earlier complete read looked there, and it was there; or it was not
    (Story().sends((1, 0), (2, 1)).final({0: 1, 1: 2}).final({1: 2}, start=1), ("HOLDS", "HOLDS", "HOLDS")),
    (Story().sends((1, 0), (2, 1)).final({1: 2}).final({1: 2}, start=1), ("VIOLATED", "VIOLATED", "HOLDS")),
    (
        Story().sends((1, 0), (2, 1)).poll([0, 1]).final({1: 2}).final({1: 2}, start=1),
        ("VIOLATED", "HOLDS", "VIOLATED"),
    ),
    (Story().sends((1, 0)).final({0: 1}).send(2, 1).final({1: 2}, start=1), ("HOLDS", "HOLDS", "VACUOUS")),
    # a later poll got it
    (
        Story().sends((1, 0), (2, 1)).final({1: 2}, start=1).poll([0, 1], [1, 2]),
        ("HOLDS", "HOLDS", "VACUOUS"),
    ),
    # half of a transaction was read; nobody was told of the other half, so no complete read has to return it
    (half_below_the_start(), ("HOLDS", "HOLDS", "HOLDS")),
    # what is above the start is judged as ever
    (Story().sends((1, 0), (2, 1), (3, 2)).final({2: 3}, start=1), ("VIOLATED", "VIOLATED", "VACUOUS")),
    (Story().sends((1, 5)).final({5: 1}, start=5), ("HOLDS", "HOLDS", "VACUOUS")),
]
"""Final reads that begin above 0, and the verdicts on lost-write, unseen and read-then-lost."""
