"""Jars of Apache Kafka: pinned lists, a downloaded Kafka, and one sentence for whatever is missing."""

from pathlib import Path

import pytest

from isr_kafka import RELEASES, Unavailable, jars, java, maven, release_of
from isr_kafka.compile import nearest
from isr_kafka.jars import pinned_jars
from isr_kafka.system import adapter_sources


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
    with pytest.raises(Unavailable, match=r"Kafka 2\.0\.0 is not pinned here; there are 4\.4\.0"):
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


def test_the_nearest_table_of_renamed_classes_is_the_newest_that_is_not_above() -> None:
    assert nearest("4.3.1", ["4.1.1", "4.3.0"]) == "4.3.0"
    assert nearest("4.5.0-SNAPSHOT", ["4.1.1", "4.4.0"]) == "4.4.0"
    assert nearest("3.9.1", ["4.0.1"]) == "4.0.1"
    assert nearest("3.9.1", []) is None


@pytest.mark.parametrize(
    ("release", "folders"),
    [
        ("4.5.0-SNAPSHOT", ["main"]),
        ("4.2.0", ["main"]),
        ("4.1.2", ["main", "kafka-4.1"]),
        ("4.0.1", ["main", "kafka-4.1", "kafka-4.0"]),
    ],
)
def test_a_release_takes_what_was_otherwise_until_it_and_after_it(release: str, folders: list[str]) -> None:
    """Without it a patch release of 4.1 would be compiled as if it were the newest."""
    assert [folder.name for folder in adapter_sources(release)] == folders
