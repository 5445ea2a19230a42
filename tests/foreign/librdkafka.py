"""librdkafka's own tests, from the sources that the crate rdkafka-sys carries; compiled once.

Each number runs as a process of its own, for one that hangs must not take the others with it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, cast

from tests.foreign.clusters import cluster
from tests.foreign.outcomes import Expected, Outcome, State
from tests.foreign.programs import Missing, Ran, foreign_folder, program, run

CRATE: Final = "rdkafka-sys"
VERSION: Final = "4.10.0+2.12.1"
_SECONDS: Final = 90.0
"""A number takes a few seconds; what waits for longer waits for something that does not come."""

_MANIFEST: Final = f"""[package]
name = "foreign"
version = "0.0.0"
edition = "2021"

[lib]
path = "lib.rs"

[dependencies]
{CRATE} = "={VERSION}"
"""
_LISTED: Final = re.compile(r"^ +_TEST\((\w+),\s*(\w+(?: \| \w+)*)", re.MULTILINE)
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_NOT_AGAINST_A_BROKER: Final = ("TEST_F_LOCAL", "TEST_F_MANUAL", "TEST_F_SOCKEM")
_FAILED: Final = re.compile(r"Test .*failed")
_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")


def librdkafka(expected: Expected, only: Sequence[str], tell: Callable[[str], None]) -> list[Outcome]:
    """Every test that needs a broker and none of the suite's own network, in quick mode."""
    folder, found = foreign_folder("librdkafka"), list[Outcome]()
    tests = built(folder, tell)
    listed = against_a_broker((tests / "test.c").read_text(encoding="utf-8"))
    with (
        cluster(folder / "brokers.log", {"num.partitions": "4"}) as brokers,
        (folder / "tests.log").open("w") as log,
    ):
        (folder / "test.conf").write_text(f"metadata.broker.list={brokers.bootstrap}\ntest.topic.random=true\n")
        for test in [t for t in listed if t not in expected.left_out and (not only or t in only)]:
            outcome = _one(test, tests, folder, log.write)
            if outcome.state is State.FAILED:
                tell(f"  fails: {test}")
            found.append(outcome)
        return found + brokers.ended()


def _one(test: str, tests: Path, folder: Path, log: Callable[[str], object]) -> Outcome:
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    environment = {
        "TESTS": test,
        "TEST_REPORT": str(report),
        "RDKAFKA_TEST_CONF": str(folder / "test.conf"),
        "LD_LIBRARY_PATH": f"{tests.parent / 'src'}:{tests.parent / 'src-cpp'}",
        "TEST_KAFKA_VERSION": "4.0.0",
    }
    ran = run(["./test-runner", "-L", "-E", "-Q", "-p1"], _SECONDS, folder=tests, environment=environment)
    log(f"== {test}\n{ran.said}\n")
    return outcome_of(test, ran, report.read_text() if report.is_file() else "")


def outcome_of(test: str, ran: Ran, report: str) -> Outcome:
    """What the runner's report says of one test; without a report it hung or crashed."""
    if ran.code is None:
        return Outcome(test, State.FAILED, f"it ran past {_SECONDS:.0f} s")
    try:
        said = cast("dict[str, dict[str, dict[str, str]]]", json.loads(report))["tests"][test]["state"]
    except (ValueError, KeyError):
        return Outcome(test, State.FAILED, f"no report, exit code {ran.code}: {ran.last[:200]}")
    match said:
        case "PASSED" | "SKIPPED" if ran.code != 0:
            return Outcome(
                test, State.FAILED, f"it reports {said} and ends with exit code {ran.code}: {ran.last[:200]}"
            )
        case "PASSED":
            return Outcome(test, State.PASSED)
        case "SKIPPED":
            return Outcome(test, State.SKIPPED)
        case _:
            return Outcome(test, State.FAILED, _complaint(ran.said))


def _complaint(said: str) -> str:
    lines = [_COLOUR.sub("", line).strip() for line in said.splitlines()]
    return next((line for line in reversed(lines) if "TEST FAILURE" in line or _FAILED.search(line)), "")[:300]


def against_a_broker(source: str) -> list[str]:
    """The tests that the runner's table has (test.c) and that need a broker as it is."""
    bare = _COMMENT.sub("", source)
    return [name for name, flags in _LISTED.findall(bare) if not any(flag in flags for flag in _NOT_AGAINST_A_BROKER)]


# Fetching and building


def built(folder: Path, tell: Callable[[str], None]) -> Path:
    """The folder with the runner; Missing if it cannot be fetched or compiled."""
    work = folder / f"librdkafka-{VERSION}"
    tests = work / "tests"
    if (tests / "test-runner").is_file():
        return tests
    for name, package in (("gcc", "gcc"), ("g++", "g++"), ("make", "make")):
        program(name, "compiles librdkafka", package)
    sources = fetched(folder)
    tell("  compiling librdkafka, once")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(sources / "librdkafka", work, symlinks=True)
    for command, where in (
        (["./configure", "--disable-gssapi", "--disable-curl"], work),
        (["make", "libs"], work),
        (["make", "build"], tests),
    ):
        ran = run(command, 1_800, folder=where)
        (folder / "build.log").write_text(ran.said)
        if ran.code != 0:
            raise Missing(f"librdkafka cannot be built: {' '.join(command)} says {ran.last[:200]!r}")
    return tests


def fetched(folder: Path) -> Path:
    """The crate's sources, which cargo holds to the registry's checksum."""
    cargo = program("cargo", "fetches librdkafka's sources", "cargo")
    crate = folder / "crate"
    crate.mkdir(exist_ok=True)
    (crate / "Cargo.toml").write_text(_MANIFEST)
    (crate / "lib.rs").write_text("")
    ran = run([cargo, "metadata", "--format-version", "1", "--quiet"], 600, folder=crate)
    start = ran.said.find('{"packages"')
    if ran.code != 0 or start < 0:
        raise Missing(f"cargo cannot fetch {CRATE} {VERSION}: {ran.last[:200]}")
    packages = cast("list[dict[str, str]]", json.loads(ran.said[start:].splitlines()[0])["packages"])
    return Path(next(p["manifest_path"] for p in packages if p["name"] == CRATE)).parent
