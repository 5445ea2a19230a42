"""Reports of others, asked of the classes of Kafka's releases: which has the bug, as docs/reports.md says.

Without it the page could name a release for a bug that it never had.
"""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from isr_found import JAVA_ROOT, JVM, fixed_classes, our_classes
from isr_kafka import Unavailable, build, classpath, jars, java, javac, tools
from isr_kafka.system import DRIVEN_RELEASES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reports.md"
ROW = re.compile(r"^\| (KAFKA-\d+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
"""Report, releases that have the bug, releases that have it no more."""

pytestmark = [pytest.mark.slow, pytest.mark.kafka]


IN_THE_ELR = ("4.4.0", "4.3.1", "4.3.0")
"""The releases with KAFKA-19975 and PR 20716, without a mend of found/removed-replica: its page says so."""


def releases() -> dict[str, dict[str, str]]:
    """What the page says: release -> report -> yes or no."""
    said: dict[str, dict[str, str]] = {}
    for report, broken, mended in ROW.findall(PAGE.read_text(encoding="utf-8")):
        for answer, where in (("yes", broken), ("no", mended)):
            for release in re.findall(r"\d+\.\d+\.\d+", where):
                said.setdefault(release, {})[report] = answer
    return said


def ran(compiled: Callable[[], Path], release: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        _ = java(), javac()
        found = jars(release)
    except Unavailable as missing:
        pytest.skip(str(missing))
    command = [java(), *JVM, "-cp", classpath(compiled(), found), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_page_has_rows() -> None:
    assert {"3.9.1", "4.0.1", "4.1.1", "4.3.1", "4.4.0"} == set(releases())


@pytest.mark.parametrize("release", ["3.9.1", "4.0.1", "4.1.1", "4.3.1", "4.4.0"])
def test_a_release_has_the_bugs_that_the_page_says(release: str) -> None:
    done = ran(lambda: build([JAVA_ROOT / "reports"], release), release, "org.apache.kafka.controller.Reports")
    assert done.returncode == 0, done.stderr
    answers = dict(line.split() for line in done.stdout.splitlines() if line.startswith("KAFKA-"))
    assert answers == releases()[release]


@pytest.mark.parametrize("release", ["4.3.1", "4.4.0"])
@pytest.mark.parametrize(("arguments", "leads"), [((), "nobody"), (("--control",), "somebody")])
def test_to_set_the_minimum_leaves_nobody_to_wait_for(release: str, arguments: tuple[str, ...], leads: str) -> None:
    """The last line says it: a crash of Java ends with the exit code that a verdict might have had."""
    done = ran(lambda: our_classes("classes", release), release, "insync.found.classes.ClearedElr", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"leads: {leads}"


@pytest.mark.parametrize("release", DRIVEN_RELEASES)
def test_a_reassignment_in_place_of_another_never_ends_from_4_3_on_and_takes_a_replica_that_was_asked_for(
    release: str,
) -> None:
    """The control cancels, and the last line is another."""
    story = "insync.found.classes.ReplacedReassignment"
    back = "under way, replicas [1, 2, 3, 4]" if release in IN_THE_ELR else "complete, replicas [1, 2, 3]"
    expected = {"": back, "--wider": "complete, replicas [1, 2, 4]", "--control": "complete, replicas [1, 2, 3]"}
    for argument, line in expected.items():
        done = ran(lambda: our_classes("classes", release), release, story, *argument.split())
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.splitlines()[-1] == line, argument


@pytest.mark.parametrize("release", ["4.4.0", "4.3.1", "4.2.2", "4.1.1", "4.0.1"])
@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("", r"r3 is not registered: Topic ID \S+ existed in isrMembers, but not in the topics map\."),
        ("--control", "r3 is registered"),
        ("--clean", "r3 is registered"),
    ],
)
def test_who_was_in_an_elr_that_was_emptied_cannot_register_once_the_topic_is_deleted(
    release: str, argument: str, expected: str
) -> None:
    story = "insync.found.classes.DeletedTopic"
    done = ran(lambda: our_classes("classes", release), release, story, *argument.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(expected, done.stdout.splitlines()[-1])


@pytest.mark.parametrize("release", DRIVEN_RELEASES)
def test_a_directory_that_is_assigned_empties_the_elr_before_4_3(release: str) -> None:
    done = ran(lambda: our_classes("classes", release), release, "insync.found.classes.AssignedDirectory")
    assert done.returncode == 0, done.stdout + done.stderr
    expected = "as before" if release in IN_THE_ELR else "empty"
    assert done.stdout.splitlines()[-1] == f"the ELR is {expected}"


@pytest.mark.parametrize("release", ["4.4.0", "4.3.1"])
def test_where_the_index_of_elrs_is_emptied_too_it_can(release: str, tmp_path: Path) -> None:
    story = "insync.found.classes.DeletedTopic"
    done = ran_fixed("elr-index-emptied", release, lambda: our_classes("classes", release), story, tmp_path)
    assert done.stdout.splitlines()[-1] == "r3 is registered"


@pytest.mark.parametrize("release", [*DRIVEN_RELEASES, "3.9.1"])
def test_a_replica_that_is_replaced_under_the_minimum_stays_in_the_elr_from_4_3_on(release: str) -> None:
    done = ran(lambda: build([JAVA_ROOT / "reports"], release), release, "org.apache.kafka.controller.ElrOfRemoved")
    assert done.returncode == 0, done.stderr
    expected = "in the ELR" if release in IN_THE_ELR else "still a replica"
    assert done.stdout.splitlines()[-1] == f"removed: {expected}"


def ran_fixed(
    fix: str, release: str, compiled: Callable[[], Path], story: str, folder: Path
) -> subprocess.CompletedProcess[str]:
    try:
        _ = java(), javac(), tools()
        before = fixed_classes(fix, release, None, folder)
    except Unavailable as missing:
        pytest.skip(str(missing))
    command = [java(), *JVM, "-cp", classpath(*before, compiled(), jars(release)), story]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.parametrize("release", IN_THE_ELR)
def test_with_the_fix_it_does_not(release: str, tmp_path: Path) -> None:
    story = "org.apache.kafka.controller.ElrOfRemoved"
    done = ran_fixed("elr-of-replicas", release, lambda: build([JAVA_ROOT / "reports"], release), story, tmp_path)
    assert done.stdout.splitlines()[-1] == "removed: not in the ELR"
