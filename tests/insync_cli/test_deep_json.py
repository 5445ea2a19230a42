"""A file of JSON that is nested too deeply is a bad file, with its name, for every verb that reads one.

Without these it would be a bug of insync's, exit code 70.
"""

import zipfile
from pathlib import Path

import pytest

from insync_cli.main import main

DEEP = "[" * 200_000
TOPICS = (
    "Topic: t\tTopicId: x\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with such files, and a description of a cluster."""
    monkeypatch.chdir(tmp_path)
    for name in ("deep.json", "deep.itf.json", "matrix.json", "1.1.jsonl"):
        (tmp_path / name).write_text(f"{DEEP}\n", encoding="utf-8")
    with zipfile.ZipFile("deep.zip", "w") as archive:
        archive.writestr("manifest.json", DEEP)
    (tmp_path / "topics.txt").write_text(TOPICS, encoding="utf-8")
    return tmp_path


@pytest.mark.long
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("show deep.itf.json", "deep.itf.json"),
        ("history deep.json --json -", "deep.json"),
        ("validate 1.1.jsonl", "1.1, line 1: "),
        ("certify deep.zip", "deep.zip"),
        ("report --quick --out out --include deep.json", "deep.json"),
        ("report --quick --out out --since .", "matrix.json"),
        ("report --out out --matrix .", "matrix.json"),
        ("prove kip-966 --replicas 2 --only type-ok --learn deep.json", "deep.json"),
        ("drill --describe topics.txt --kafka 4.4.0 reassign deep.json", "deep.json"),
        ("conform --sut kafka --trace deep.itf.json", "deep.itf.json"),
    ],
)
def test_json_that_is_nested_too_deeply_is_a_bad_file(
    capsys: pytest.CaptureFixture[str], command: str, file: str
) -> None:
    assert main(command.split()) == 65, command
    text = capsys.readouterr().err
    assert file in text
    assert text.count("\n") == 1
