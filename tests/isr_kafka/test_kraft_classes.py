"""KafkaRaftClient along the edges of the model of the quorum, in both directions.

Without these, the model could say something of KRaft that Kafka's own code does not do.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from insync_cli.conformance.conform import adapter_properties
from insync_cli.exits import Exit
from insync_cli.main import main
from insync_cli.registry import design_named
from isr_conform.conformance import conform
from isr_conform.conformance_result import ConformanceResult, Limits, Schedule, nothing_known
from isr_conform.control import agrees_there
from isr_conform.sut_client import ProcessClient
from isr_kafka.mistakes import Mistake, plant
from isr_kafka.raft_mistakes import (
    BY_WALKS,
    LOG_NOT_TRUNCATED,
    MISTAKES,
    RESTART,
    THREE_VOTERS,
    TWO,
    TWO_EPOCHS,
    VOTE_NOT_SAVED,
    WAITS_ON_AFTER_COMMIT,
)
from isr_kafka.system import QUORUM, QUORUM_ON_FILES, Kafka
from isr_lang import Instance

pytestmark = [pytest.mark.kafka]

TOP = Path(__file__).resolve().parents[2]

VOTE_REFUSED = ("inconsistent state", ("answer[v1][v2]", "grant", "rejection"))
ASKS_AGAIN = (
    "voter_stands 1",
    "voter_answers_pre_vote 2 1",
    "prospective_counts 1 2",
    "voter_answers_vote 2 1",
    "voter_loses_disk 1",
    "voter_starts 1",
    "voter_stands 1",
    "voter_answers_pre_vote 3 1",
    "prospective_counts 1 3",
    "voter_answers_vote 2 1",
)
"""A nominee has lost its disk, and asks a voter again in the same epoch."""
ASKS_AGAIN_AFTER_LATE = (
    "voter_stands 1",
    "voter_answers_pre_vote 2 1",
    "prospective_counts 1 2",
    "sender_gives_up 1 2",
    "voter_loses_disk 1",
    "voter_starts 1",
    "voter_stands 1",
    "voter_answers_pre_vote 2 1",
    "prospective_counts 1 2",
    "late_vote_arrives 2 1",
    "voter_answers_vote 2 1",
)
"""The same of two voters, where its former request arrives late."""
NAMES_ANOTHER_LEADER = (
    "voter_stands 1",
    "voter_answers_pre_vote 2 1",
    "prospective_counts 1 2",
    "voter_answers_vote 2 1",
    "candidate_counts 1 2",
    "voter_loses_disk 2",
    "leader_resigns 1",
    "voter_starts 2",
    "voter_stands 2",
    "voter_answers_pre_vote 3 2",
    "prospective_counts 2 3",
    "voter_answers_vote 3 2",
    "voter_answers_end 3 1",
    "candidate_counts 2 3",
    "leader_answers_fetch 1 3",
    "voter_fails_at_request 1 2",
    "voter_starts 1",
    "voter_fails_at_request 3 2",
    "voter_fails_at_request 2 1",
    "voter_starts 3",
    "voter_starts 2",
    "voter_answers_end 3 1",
    "voter_fails_at_request 2 1",
    "voter_stands 3",
    "voter_starts 2",
    "voter_answers_pre_vote 2 3",
    "voter_fails_at_answer 3 2",
)
"""A lost disk has made two leaders of one epoch. Who knows one is told of the other."""


def driven(kafka: Kafka, constants: Mapping[str, int], limits: Limits | None = None) -> ConformanceResult:
    design = design_named("kraft-3.9" if kafka.release.startswith("3.") else "kraft")
    return conform(Instance(design, dict(constants)), kafka.command(), limits or Limits(), patience=300.0)


def agrees(done: ConformanceResult) -> None:
    assert done.conforms, done.differences
    assert done.edges == done.of_edges
    assert not done.cannot


def is_found(mistake: Mistake, kafka: Kafka, folder: Path, walks: int | None) -> None:
    """The mistake is found by so many walks, or along every edge, and there Kafka as it is agrees with the model."""
    instance = Instance(design_named(mistake.design), dict(mistake.bounds))
    wrong = kafka.command([plant(kafka, mistake, folder)], mistake.properties)
    first = Limits(stop_at_first=True, walks=walks, walk_length=80, seed=1)
    known = kafka.explain() or nothing_known
    (difference,) = conform(instance, wrong, first, patience=300.0, explain=known).differences
    unchanged = kafka.command(properties=mistake.properties)
    assert agrees_there(instance, unchanged, difference, patience=300.0), difference


def ends_as_on_the_page(design: str, kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """The command of docs/kraft-classes.md for the design, of this release, ends with the line that stands there."""
    page = (TOP / "docs" / "kraft-classes.md").read_text(encoding="utf-8")
    command, _, rest = page.partition(f"    $ insync conform {design} ")[2].partition("\n")
    assert kafka.release in command
    assert main(["conform", design, *command.split(), "--plain"]) == 0
    line = next(line.strip() for line in rest.splitlines() if line.startswith("    insync conform"))
    assert capsys.readouterr().out.splitlines()[-1] == line


def is_of_another_family(word: str, designs: str, capsys: pytest.CaptureFixture[str]) -> None:
    """That part of Kafka is not driven along a partition: its answers would be taken for nonsense."""
    assert main(["conform", "kip-966", "--sut", word, "--replicas", "2"]) == Exit.USAGE
    sentence = f"--sut {word} is driven along designs as {designs}, and kip-966 is of another family"
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
def test_every_edge_of_the_smallest_bounds_in_both_directions(newest_raft: Kafka) -> None:
    done = driven(newest_raft, TWO)
    agrees(done)
    assert done.name == f"KafkaRaftClient of Apache Kafka {newest_raft.release}"


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.name)
def test_each_mistake_in_kafkas_raft_is_found_where_kafka_agrees(
    mistake: Mistake, newest_raft: Kafka, tmp_path: Path
) -> None:
    is_found(mistake, newest_raft, tmp_path, 600 if mistake.bounds in BY_WALKS else None)


@pytest.mark.slow
def test_every_edge_with_a_restart_on_files(newest_raft_on_files: Kafka) -> None:
    """Of a restart the adapter in memory has only what we wrote; here Kafka reads what Kafka wrote."""
    done = driven(newest_raft_on_files, RESTART)
    agrees(done)
    assert done.name == f"KafkaRaftClient of Apache Kafka {newest_raft_on_files.release}, on files"


@pytest.mark.slow
def test_a_vote_that_is_not_saved_is_found_where_kafka_agrees(newest_raft_on_files: Kafka, tmp_path: Path) -> None:
    is_found(VOTE_NOT_SAVED, newest_raft_on_files, tmp_path, None)


@pytest.mark.slow
def test_files_that_are_not_truncated_are_found_where_kafka_agrees(newest_raft_on_files: Kafka, tmp_path: Path) -> None:
    """Who led in epoch 1 follows the leader of epoch 2, which has not its record."""
    steps = [
        ("voter_stands", 1, None),
        ("voter_answers_pre_vote", 2, 1),
        ("prospective_counts", 1, 2),
        ("voter_answers_vote", 2, 1),
        ("candidate_counts", 1, 2),
        ("voter_stands", 2, None),
        ("voter_answers_pre_vote", 3, 2),
        ("prospective_counts", 2, 3),
        ("voter_answers_vote", 3, 2),
        ("candidate_counts", 2, 3),
        ("voter_answers_begin", 1, 2),
        ("leader_answers_fetch", 2, 1),
        ("follower_takes_fetch", 1, 2),
    ]
    given = tuple((action, {"r": r - 1} | ({} if q is None else {"q": q - 1})) for action, r, q in steps)
    limits = Limits(schedule=Schedule(initial={}, steps=given))
    instance = Instance(design_named("kraft"), dict(THREE_VOTERS))
    control = conform(instance, newest_raft_on_files.command(), limits, patience=300.0)
    agrees_with_all = control.conforms and control.steps == len(steps) and not control.skipped_steps
    assert agrees_with_all, control
    wrong = newest_raft_on_files.command(before=[plant(newest_raft_on_files, LOG_NOT_TRUNCATED, tmp_path)])
    (difference,) = conform(instance, wrong, limits, patience=300.0).differences
    assert difference.action == "follower_takes_fetch"
    assert difference.places[0][0] == "log[v1]"


@pytest.mark.slow
def test_a_fetch_that_waits_on_after_a_commit_is_found_where_kafka_agrees(newest_raft: Kafka, tmp_path: Path) -> None:
    """Of four voters one waits at the end of the log when the fetch of another commits. Of three none does."""
    nomination = [
        (action, r, q)
        for request, counts in (
            ("voter_answers_pre_vote", "prospective_counts"),
            ("voter_answers_vote", "candidate_counts"),
        )
        for v in (2, 3)
        for action, r, q in ((request, v, 1), (counts, 1, v))
    ]
    fetches = [
        (action, r, q)
        for v in (2, 3)
        for action, r, q in (
            ("voter_answers_begin", v, 1),
            ("leader_answers_fetch", 1, v),
            ("follower_takes_fetch", v, 1),
            ("leader_answers_fetch", 1, v),
        )
    ]
    steps: list[tuple[str, int, int | None]] = [("voter_stands", 1, None), *nomination, *fetches]
    steps.append(("follower_takes_fetch", 2, 1))
    given = tuple((action, {"r": r - 1} | ({} if q is None else {"q": q - 1})) for action, r, q in steps)
    limits = Limits(schedule=Schedule(initial={}, steps=given))
    instance = Instance(design_named(WAITS_ON_AFTER_COMMIT.design), dict(WAITS_ON_AFTER_COMMIT.bounds))
    waits = WAITS_ON_AFTER_COMMIT.properties
    control = conform(instance, newest_raft.command(properties=waits), limits, patience=300.0)
    agrees_with_all = control.conforms and control.steps == len(steps) and not control.skipped_steps
    assert agrees_with_all, control
    wrong = newest_raft.command([plant(newest_raft, WAITS_ON_AFTER_COMMIT, tmp_path)], waits)
    (difference,) = conform(instance, wrong, limits, patience=300.0).differences
    assert difference.action == "leader_answers_fetch"
    assert difference.places[0][0] == "answer[v2][v1]"


@pytest.mark.slow
def test_a_vote_for_a_late_request_is_found_where_kafka_agrees(newest_raft: Kafka, tmp_path: Path) -> None:
    """Who led epoch 1 hears of epoch 2 by the request of a nominee that has given it up, and whose log is behind."""
    steps = [
        ("voter_stands", 1, None),
        ("voter_answers_pre_vote", 2, 1),
        ("prospective_counts", 1, 2),
        ("voter_answers_vote", 2, 1),
        ("candidate_counts", 1, 2),
        ("voter_stands", 3, None),
        ("voter_answers_pre_vote", 2, 3),
        ("prospective_counts", 3, 2),
        ("voter_stands", 3, None),
        ("voter_answers_pre_vote", 2, 3),
        ("prospective_counts", 3, 2),
        ("sender_gives_up", 3, 1),
        ("late_vote_arrives", 1, 3),
    ]
    given = tuple((action, {"r": r - 1} | ({} if q is None else {"q": q - 1})) for action, r, q in steps)
    limits = Limits(schedule=Schedule(initial={}, steps=given))
    instance = Instance(design_named("kraft-late-requests"), {"voters": 3, "epochs": 2, "log": 2, "writes": 1})
    control = conform(instance, newest_raft.command(), limits, patience=300.0)
    agrees_with_all = control.conforms and control.steps == len(steps) and not control.skipped_steps
    assert agrees_with_all, control
    (votes_again,) = (mistake for mistake in MISTAKES if mistake.name == "votes-again")
    wrong = newest_raft.command(before=[plant(newest_raft, votes_again, tmp_path)])
    (difference,) = conform(instance, wrong, limits, patience=300.0).differences
    assert difference.action == "late_vote_arrives"
    assert difference.places[0][0] == "vote[v1]"


@pytest.mark.slow
@pytest.mark.parametrize("release", ["4.4.0", "4.0.1"])
def test_every_edge_where_a_request_is_late(release: str) -> None:
    design = design_named("kraft-late-requests")
    done = conform(Instance(design, dict(TWO)), Kafka(release, part=QUORUM).command(), Limits(), patience=300.0)
    agrees(done)
    assert all(done.actions[name] for name in ("late_vote_arrives", "late_fetch_arrives", "late_begin_arrives"))


@pytest.mark.slow
@pytest.mark.parametrize("faults", [{}, {"restarts": 1}, {"lost_disks": 1}], ids=["none", "restart", "lost disk"])
def test_every_edge_of_two_epochs(faults: Mapping[str, int], newest_raft: Kafka) -> None:
    agrees(driven(newest_raft, {**TWO_EPOCHS, **faults}))


@pytest.mark.slow
def test_every_edge_of_the_smallest_bounds_in_each_release(each_raft: Kafka) -> None:
    agrees(driven(each_raft, TWO))


@pytest.mark.slow
def test_every_edge_of_lists_that_differ_and_two_clients_lead_one_epoch(newest_raft: Kafka) -> None:
    done = conform(Instance(design_named("kraft-lists-differ"), {}), newest_raft.command(), Limits(), patience=300.0)
    agrees(done)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "design"),
    [
        ("4.4.0", "kraft-waiting-fetches"),
        ("4.1.1", "kraft-waiting-fetches"),
        ("4.0.1", "kraft-4.0-waiting-fetches"),
        ("3.9.1", "kraft-3.9-waiting-fetches"),
    ],
)
def test_every_edge_where_fetches_wait(release: str, design: str) -> None:
    system = Kafka(release, part=QUORUM).command(properties=adapter_properties(design_named(design)))
    done = conform(Instance(design_named(design), dict(TWO_EPOCHS)), system, Limits(), patience=300.0)
    agrees(done)
    assert done.actions["waiting_fetch_times_out"] > 0


@pytest.mark.slow
def test_a_watermark_answers_no_fetch_in_4_0() -> None:
    """KIP-1166 is in 4.1: along the design of 4.0 that differs, and 4.0 along today's."""
    for release, design in (("4.1.1", "kraft-4.0-waiting-fetches"), ("4.0.1", "kraft-waiting-fetches")):
        system = Kafka(release, part=QUORUM).command(properties=adapter_properties(design_named(design)))
        first = Limits(stop_at_first=True)
        done = conform(Instance(design_named(design), dict(TWO_EPOCHS)), system, first, patience=300.0)
        assert [d.action for d in done.differences] == ["leader_answers_fetch"], release


@pytest.mark.slow
@pytest.mark.parametrize("design", ["kraft", "kraft-waiting-fetches"])
def test_walks_of_three_voters_agree(design: str, newest_raft: Kafka) -> None:
    system = newest_raft.command(properties=adapter_properties(design_named(design)))
    limits = Limits(walks=40, walk_length=60, seed=1)
    done = conform(Instance(design_named(design), dict(THREE_VOTERS)), system, limits, patience=300.0)
    assert done.conforms, done.differences
    assert not done.cannot


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "voters", "steps", "differs"),
    [
        ("kraft", 3, ASKS_AGAIN, VOTE_REFUSED),
        ("kraft-late-requests", 2, ASKS_AGAIN_AFTER_LATE, VOTE_REFUSED),
        ("kraft", 3, NAMES_ANOTHER_LEADER, ("missing action",)),
    ],
    ids=["vote", "vote after a late request", "answer"],
)
def test_where_the_model_is_wrong(
    design: str, voters: int, steps: Sequence[str], differs: tuple[object, ...], newest_raft: Kafka
) -> None:
    """As docs/kraft-classes.md says: Kafka agrees up to the last step, which it takes otherwise or does not take."""
    instance = Instance(design_named(design), {**TWO, "voters": voters, "lost_disks": 1})
    given = tuple((s.split()[0], tuple(int(v) - 1 for v in s.split()[1:])) for s in steps)
    names = {action.name: [name for name, _ in action.parameters] for action in instance.design.actions}
    schedule = Schedule(initial={}, steps=tuple((a, dict(zip(names[a], vs, strict=True))) for a, vs in given))
    done = conform(instance, newest_raft.command(), Limits(schedule=schedule), patience=300.0)
    last = given[-1][0]
    assert all(step.startswith(last) for step in done.skipped_steps)
    found = [d for d in done.differences if d.action == last]
    assert [(str(d.kind), *d.places) for d in found] == [differs]
    assert all(len(d.path) >= len(steps) - 1 for d in done.differences)


def test_the_quorum_is_not_driven_along_a_partition(capsys: pytest.CaptureFixture[str]) -> None:
    is_of_another_family("kafka-raft", "kraft", capsys)


def test_the_quorum_is_driven_in_every_pinned_release() -> None:
    assert QUORUM.releases[0] == "4.4.0"
    assert QUORUM.releases[-1] == "3.9.1"
    assert len(QUORUM.releases) == 13


@pytest.mark.parametrize(("design", "more"), [("kraft-853", []), ("kraft", ["--snapshots", "1"])])
def test_no_voters_in_the_log_and_no_snapshots_on_files(
    design: str, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """These would be driven on a disk in memory, as if they were on files."""
    assert main(["conform", design, "--sut", "kafka-raft-files", *more]) == Exit.USAGE
    assert "on files" in capsys.readouterr().err


@pytest.mark.parametrize("part", ["kafka-raft", "kafka-raft-files"])
def test_no_upgrade_of_the_version_is_driven(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conform", "kraft-version-upgrade", "--sut", part]) == Exit.USAGE
    assert "its adapter upgrades no kraft.version" in capsys.readouterr().err


def test_on_files_the_releases_that_have_kafkas_log_in_java_are_driven() -> None:
    assert QUORUM_ON_FILES.releases == ("4.4.0", "4.3.1", "4.3.0")


@pytest.mark.slow
def test_a_resigned_leader_is_an_obstacle_as_the_page_says(
    newest_raft: Kafka, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """KAFKA-20895, by the command of docs/kraft-classes.md and with its last line."""
    monkeypatch.chdir(TOP)
    ends_as_on_the_page("kafka-20895", newest_raft, capsys)


def taken(
    kafka: Kafka, design: str, bounds: Mapping[str, int], steps: Sequence[tuple[str, str, str | int | None]]
) -> list[bool]:
    """Whether the system takes each step, of an action at r and with another parameter, nothing being compared."""
    instance = Instance(design_named(design), dict(bounds))
    names = {action.name: [name for name, _ in action.parameters] for action in instance.actions}
    system = ProcessClient(kafka.command(), 300.0)
    try:
        system.ask("hello", constants=dict(instance.constants))
        system.ask("reset", state={})
        answers = [
            system.ask("step", action=action, parameters=dict(zip(names[action], given, strict=False)))
            for action, *given in steps
        ]
    finally:
        system.close()
    return [bool(answer.get("done")) for answer in answers]


def role_after_end(release: str, behind: int, voter: int) -> str | None:
    """The role of this voter, otherwise than in the model, when it hears that v1 resigned and one of two is behind.

    v2 and v3 follow v1. One has its LeaderChange, and has fetched after that. The other is `behind`, and has fetched at
    the beginning alone.
    """
    pre_votes = not release.startswith("3.")
    ahead = 5 - behind
    nomination = [("voter_answers_pre_vote", 2, 1), ("prospective_counts", 1, 2)] if pre_votes else []
    steps = [
        ("voter_stands", 1, None),
        *nomination,
        ("voter_answers_vote", 2, 1),
        ("candidate_counts", 1, 2),
        ("voter_answers_begin", behind, 1),
        ("leader_answers_fetch", 1, behind),
        ("voter_answers_begin", ahead, 1),
        ("leader_answers_fetch", 1, ahead),
        ("follower_takes_fetch", ahead, 1),
        ("leader_answers_fetch", 1, ahead),
        ("leader_resigns", 1, None),
        ("voter_answers_end", voter, 1),
    ]
    given = tuple((action, {"r": r - 1} | ({} if q is None else {"q": q - 1})) for action, r, q in steps)
    instance = Instance(design_named("kraft" if pre_votes else "kraft-3.9"), dict(THREE_VOTERS))
    system = Kafka(release, part=QUORUM).command(properties={"insync.reset-to-nothing-is-due": "true"})
    done = conform(instance, system, Limits(schedule=Schedule(initial={}, steps=given)), patience=300.0)
    assert done.steps == len(steps)
    if done.conforms:
        return None
    (difference,) = done.differences
    assert difference.action == "voter_answers_end"
    return next(str(place[-1]) for place in difference.places if place[0] == f"role[v{voter}]")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "nominee"), [("4.4.0", "prospective"), ("4.3.1", "prospective"), ("3.9.1", "candidate")]
)
def test_who_has_fetched_most_stands_at_once_when_its_leader_resigns(release: str, nominee: str) -> None:
    """EndQuorumEpoch names the followers by what they have fetched. The first one's timer is due at once.

    In the model each timer may fire at any moment, in a step of its own, so the adapter does not see this elsewhere.
    """
    assert role_after_end(release, behind=3, voter=2) == nominee
    assert role_after_end(release, behind=3, voter=3) is None
    assert role_after_end(release, behind=2, voter=3) == nominee


@pytest.mark.slow
@pytest.mark.parametrize("snapshots", [True, False], ids=["snapshot", "control"])
def test_a_follower_that_truncates_after_its_snapshot_has_no_voters(snapshots: bool, newest_raft: Kafka) -> None:
    """Difference B: a leader takes a snapshot that ends where its uncommitted record with voters begins, and truncates
    that when it follows another. From then on it does not stand, as it knows of no voters.
    """
    first = [
        ("voter_stands", "v1", None),
        ("voter_answers_pre_vote", "v2", "v1"),
        ("prospective_counts", "v1", "v2"),
        ("voter_answers_vote", "v2", "v1"),
        ("candidate_counts", "v1", "v2"),
        ("voter_answers_begin", "v2", "v1"),
        ("leader_answers_fetch", "v1", "v2"),
        ("follower_takes_fetch", "v2", "v1"),
        ("leader_answers_fetch", "v1", "v2"),
        ("leader_updates_voter", "v1", "v2"),
    ]
    snapshot = [("voter_takes_snapshot", "v1", 1)] if snapshots else []
    then = [
        ("voter_stands", "v2", None),
        ("voter_answers_pre_vote", "v3", "v2"),
        ("prospective_counts", "v2", "v3"),
        ("voter_answers_vote", "v3", "v2"),
        ("candidate_counts", "v2", "v3"),
        ("voter_answers_begin", "v1", "v2"),
        ("leader_answers_fetch", "v2", "v1"),
        ("follower_takes_fetch", "v1", "v2"),
        ("voter_stands", "v1", None),
    ]
    bounds = {"voters": 3, "epochs": 2, "log": 3, "snapshots": 1}
    *before, stands = taken(newest_raft, "kraft-853", bounds, [*first, *snapshot, *then])
    assert all(before)
    assert stands is not snapshots
