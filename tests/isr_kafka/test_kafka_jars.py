"""Jars of Apache Kafka: pinned lists, a downloaded Kafka, and one sentence for whatever is missing."""

import re
from pathlib import Path

import pytest

from isr_kafka import RELEASES, Unavailable, build, jars, java, maven, release_of
from isr_kafka import compile as compile_module
from isr_kafka.compile import neighbours, overlays
from isr_kafka.jars import pinned_jars
from isr_kafka.system import DRIVEN_RELEASES, Kafka, adapter_sources, kafka_from_word


def downloaded(folder: Path, *names: str) -> Path:
    (folder / "libs").mkdir()
    for name in names:
        (folder / "libs" / name).write_bytes(b"")
    return folder


def test_releases_come_newest_first_and_each_pins_its_broker() -> None:
    assert RELEASES[0] == "4.4.0"
    for release in RELEASES:
        assert f"kafka_2.13-{release}.jar" in {jar.file for jar in pinned_jars(release)}
        assert all(len(jar.sha256) == 64 for jar in pinned_jars(release))


def test_a_downloaded_kafka_gives_its_jars_without_what_logs(tmp_path: Path) -> None:
    home = downloaded(
        tmp_path, "kafka_2.13-4.5.0-SNAPSHOT.jar", "slf4j-reload4j-1.7.36.jar", "log4j-slf4j-impl-2.24.jar"
    )
    assert [path.name for path in jars(home=home)] == ["kafka_2.13-4.5.0-SNAPSHOT.jar"]
    assert release_of(jars(home=home)) == "4.5.0-SNAPSHOT"


def test_a_folder_without_jars_is_no_kafka(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="has no libs/ with Kafka's jars"):
        jars(home=tmp_path)


def test_a_folder_of_other_jars_is_no_kafka(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"no kafka_2\.13-VERSION\.jar"):
        jars(home=downloaded(tmp_path, "scala-library-2.13.18.jar"))


def test_a_release_that_is_not_pinned_names_those_that_are() -> None:
    with pytest.raises(Unavailable, match=r"Kafka 2\.0\.0 is not pinned here.*; there are 4\.4\.0.*--kafka-home DIR"):
        jars("2.0.0")


def test_without_java_or_maven_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(Unavailable, match="a Java runtime is missing"):
        java()
    with pytest.raises(Unavailable, match="Maven, which fetches Kafka's jars, is missing"):
        maven()


@pytest.mark.processes
def test_a_jar_with_another_checksum_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stand-in for Maven copies files of the right names and the wrong content."""
    program = tmp_path / "mvn"
    names = " ".join(jar.file for jar in pinned_jars("tools"))
    program.write_text(
        '#!/bin/sh\nfor a in "$@"; do case $a in -DoutputDirectory=*) d=${a#*=};; esac; done\n'
        f"mkdir -p $d; for n in {names}; do echo x > $d/$n; done\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("INSYNC_CACHE", str(tmp_path / "cache"))
    from isr_kafka import tools

    with pytest.raises(Unavailable, match="is not the file that is pinned"):
        tools()
    program.write_text("#!/bin/sh\necho '[ERROR] Network is unreachable'; exit 1\n")
    with pytest.raises(Unavailable, match="Maven cannot fetch the jars of tools: Network is unreachable"):
        tools()


def test_a_release_is_compiled_as_its_own_or_as_its_neighbours_on_both_sides() -> None:
    branches = ["4.1", "4.3", "4.10"]
    assert neighbours("4.3.1", branches) == ("4.3",)
    assert neighbours("4.2.7", branches) == ("4.1", "4.3")
    assert neighbours("4.9.0", branches) == ("4.3", "4.10")
    assert neighbours("4.11.0-SNAPSHOT", branches) == ("4.10",)
    assert neighbours("3.9.1", branches) == ("4.1",)
    assert neighbours("3.9.1", []) == ()


@pytest.mark.parametrize(
    ("branch", "folders"),
    [
        ("4.4", ["conform", "main"]),
        ("4.3", ["conform", "main"]),
        ("4.2", ["conform", "main", "main-4.2"]),
        ("4.1", ["conform", "main", "main-4.2", "main-4.1"]),
        ("4.0", ["conform", "main", "main-4.2", "main-4.1", "main-4.0"]),
    ],
)
def test_a_release_takes_what_was_otherwise_until_it_and_after_it(branch: str, folders: list[str]) -> None:
    """Without it a patch release of 4.1 would be compiled as if it were the newest."""
    assert [folder.name for source in adapter_sources() for folder in overlays(source, branch)] == folders


def test_every_pinned_release_of_kafka_4_is_driven() -> None:
    assert tuple(release for release in RELEASES if release.startswith("4.")) == DRIVEN_RELEASES
    assert len(DRIVEN_RELEASES) == 12


COMPILER = """#!/bin/sh
while [ "$1" != -d ]; do shift; done
out=$2
for file in "$@"; do :; done
if grep -q REFUSED "$file"; then echo "A.java:1: error: no REFUSED" >&2; exit 1; fi
mkdir -p $out; cp "$file" $out/
"""


@pytest.fixture
def between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Kafka 4.2.7 of which nothing is known, between 4.1 and 4.3, with a stand-in for the compiler."""
    home = tmp_path / "kafka"
    home.mkdir()
    downloaded(home, "kafka_2.13-4.2.7.jar")
    names = tmp_path / "renamed"
    names.mkdir()
    sources = tmp_path / "src" / "main"
    sources.mkdir(parents=True)
    (sources / "A.java").write_text("import org.New;\n")
    program = tmp_path / "bin" / "javac"
    program.parent.mkdir()
    program.write_text(COMPILER)
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("INSYNC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_module, "RENAMES_FOLDER", names)
    monkeypatch.setattr(compile_module, "BRANCHES", ("4.1", "4.3"))
    return tmp_path


@pytest.mark.processes
@pytest.mark.parametrize(("refused", "taken"), [("4.1", "4.3"), ("4.3", "4.1")])
def test_an_unknown_release_is_tried_as_both_of_its_neighbours(between: Path, refused: str, taken: str) -> None:
    """Without the newer one 4.2.2 was refused, of which seven lines are as in 4.3."""
    (between / "renamed" / f"{refused}.txt").write_text("org.New REFUSED\n")
    (between / "renamed" / f"{taken}.txt").write_text("org.New org.Taken\n")
    classes = build([between / "src" / "main"], home=between / "kafka")
    assert (classes / "A.java").read_text() == "import org.Taken;\n"


@pytest.mark.processes
def test_an_unknown_release_that_fits_neither_neighbour_is_refused_with_both(between: Path) -> None:
    for branch in ("4.1", "4.3"):
        (between / "renamed" / f"{branch}.txt").write_text("org.New REFUSED\n")
    sentence = (
        "our Java does not know Kafka 4.2.7, and does not compile against it as for 4.1 (1 errors) nor as for 4.3 "
        "(1 errors); the first: A.java:1: error: no REFUSED"
    )
    with pytest.raises(Unavailable, match=re.escape(sentence)):
        build([between / "src" / "main"], home=between / "kafka")


def test_a_release_that_is_not_driven_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(
        Unavailable, match=r"4\.2\.7 cannot be driven here \(did you mean 4\.2\.2\?\).*--kafka-home DIR"
    ):
        kafka_from_word("kafka=4.2.7")
    with pytest.raises(Unavailable, match=r"3\.9\.1 cannot be driven here"):
        kafka_from_word("kafka=3.9.1")
    home = downloaded(tmp_path, "kafka_2.13-4.2.7.jar")
    assert kafka_from_word("kafka", home) == kafka_from_word("kafka=4.2.7", home) == Kafka("4.2.7", home)
    with pytest.raises(Unavailable, match=r"has Kafka 4\.2\.7, not 4\.4\.0"):
        kafka_from_word("kafka=4.4.0", home)
