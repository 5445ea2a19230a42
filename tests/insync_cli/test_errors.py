"""Whatever is asked wrongly gets one clear sentence on stderr, the nearest spelling, and 64 or 65."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from insync_cli.main import main


def sentence(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on stderr; nothing is on stdout."""
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("insync: ")
    assert said.err.count("\n") == 1
    return said.err.removeprefix("insync: ").rstrip("\n")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("chekc careful", "there is no verb 'chekc'; did you mean 'check'?"),
        ("check carefull", "there is no design 'carefull'; did you mean 'careful'?"),
        ("export a.itf.json", "'a.itf.json' is no design but a file: insync show and insync explain read traces"),
        ("check zzz", "there is no design 'zzz'; the designs are careful, hasty, empty"),
        ("check", "the following arguments are required: DESIGN"),
        (
            "check careful --property never-aheda",
            "has no property 'never-aheda'; did you mean 'never-ahead'?",
        ),
        ("check careful --property xyz", "its properties are never-ahead, never-back, "),
        ("check careful --tickets 0", "--tickets is a whole number from 1 to 200, not 0"),
        ("check careful --tickets -1", "--tickets is a whole number from 1 to 200, not -1"),
        ("check careful --tickets 1000000000000000", "from 1 to 200, not 1000000000000000"),
        ("check careful --tickets many", "--tickets is a whole number from 1 to 200, not many"),
        ("check careful --tickets 1.5", "--tickets is a whole number from 1 to 200, not 1.5"),
        ("check careful --reopen maybe", "--reopen is on or off, not maybe"),
        ("check careful --calls 2", "--calls is one of 0, 1, all, not 2"),
        ("check careful --ticket 3", "there is no option --ticket; did you mean '--tickets'?"),
        ("check empty --tickets 3", "empty has no bound or setting --tickets; other designs do"),
        (
            "check careful --rush 9",
            "the desk hurries for more tickets than there are (--rush 9, --tickets 3)",
        ),
        ("check careful --engine natvie", "argument --engine: invalid choice: 'natvie'"),
        ("check careful --workers 0", "--workers: a whole number from 1, not 0"),
        ("check careful --max-states 0", "--max-states: a whole number from 1, not 0"),
        ("check careful --max-states ten", "--max-states: a whole number from 1, not ten"),
        ("check careful --max-seconds -1", "--max-seconds: a number of seconds above 0, not -1"),
        ("check careful --max-seconds nan", "a number of seconds above 0, not nan"),
        ("check careful --memory lots", "--memory: a size such as 500M or 2G, not lots"),
        ("check careful --expect never-ahead", "--expect is PROPERTY=VERDICT, not never-ahead"),
        ("check careful --expect never-aheat=VIOLATED", "did you mean 'never-ahead'?"),
        ("check careful --expect never-ahead=VIOLATES", "no verdict 'VIOLATES'; did you mean 'VIOLATED'?"),
        ("check careful hasty", "did not expect 'hasty'"),
        ("check careful --out file/below", "cannot write to the folder file/below: not a directory"),
        ("check careful --json file/below.json", "cannot write file/below.json: not a directory"),
        ("designs hastyy", "there is no design 'hastyy'; did you mean 'hasty'?"),
        ("mutate carefull", "did you mean 'careful'?"),
    ],
)
def test_a_wrong_command_is_refused_with_one_sentence(
    desk: Path, capsys: pytest.CaptureFixture[str], command: str, says: str
) -> None:
    (desk / "file").write_text("")
    assert main(command.split()) == 64
    assert says in sentence(capsys)


def test_nothing_is_explored_before_the_folder_is_known_to_be_writable(desk: Path) -> None:
    (desk / "runs").write_text("a file where the folder should be")
    assert main(["check", "careful"]) == 64


@pytest.mark.parametrize("verb", ["show", "explain", "minimise"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be read: No such file or directory"),
        ("", "not a trace: the file is empty"),
        ("{", "cut off: it ends in the middle"),
        ("hello", "not a trace: it is not JSON"),
        ('{"a": 1}', "not a trace: it is JSON, but has no states"),
        ('{"states": []}', "the trace has no states"),
        ('{"#meta": {"schema": "insync/trace/99"}, "states": [{}]}', "written by another version of insync"),
    ],
)
def test_a_bad_trace_file_is_refused_with_one_sentence(
    desk: Path, capsys: pytest.CaptureFixture[str], verb: str, text: str | None, says: str
) -> None:
    if text is not None:
        (desk / "t.itf.json").write_text(text)
    assert main([verb, "t.itf.json"]) == 65
    said = sentence(capsys)
    assert said.startswith("t.itf.json: ")
    assert says in said


@pytest.fixture
def trace(desk: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    main(["check", "hasty", "--property", "never-ahead", "--out", "out", "--quiet"])
    capsys.readouterr()
    return desk / "out" / "never-ahead.itf.json"


@pytest.mark.parametrize("verb", ["show", "explain", "minimise"])
def test_a_truncated_trace_is_refused(trace: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    trace.write_text(trace.read_text()[:-40])
    assert main([verb, str(trace)]) == 65
    assert "cut off: it ends in the middle" in sentence(capsys)


@pytest.mark.parametrize("verb", ["explain", "minimise"])
@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("model_hash", "0123456789abcdef", "another version of hasty"),
        ("design", "heisty", "there is no design 'heisty'; did you mean 'hasty'?"),
        ("property", "never-aheed", "never-aheed"),
        ("constants", {"tickets": 999}, "--tickets is a whole number from 1 to 200, not 999"),
    ],
)
def test_a_trace_of_another_model_is_refused(
    trace: Path, capsys: pytest.CaptureFixture[str], verb: str, key: str, value: object, says: str
) -> None:
    whole = json.loads(trace.read_text())
    whole["#meta"][key] = value
    trace.write_text(json.dumps(whole))
    assert main([verb, str(trace)]) == 65
    assert says in sentence(capsys)


def test_a_trace_of_another_version_is_shown_and_the_difference_is_said(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = json.loads(trace.read_text())
    whole["#meta"]["model_hash"] = "0123456789abcdef"
    trace.write_text(json.dumps(whole))
    assert main(["show", str(trace)]) == 65
    said = capsys.readouterr()
    assert "T1  serves()" in said.out
    assert "it is of another version of hasty (model 0123456789abcdef, now" in said.err


@pytest.mark.parametrize("verb", ["explain", "minimise"])
def test_a_foreign_trace_can_be_shown_but_not_replayed(
    desk: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    (desk / "t.itf.json").write_text('{"vars": ["x"], "states": [{"x": 1}, {"x": 2}]}')
    assert main(["show", "t.itf.json"]) == 0
    assert "1 -> 2" in capsys.readouterr().out
    assert main([verb, "t.itf.json"]) == 65
    assert "written by another program" in sentence(capsys)


@pytest.mark.processes
def test_a_closed_pipe_is_no_bug() -> None:
    command = f"{sys.executable} -m insync_cli.main --help"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | true"], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 141)
    assert "Traceback" not in done.stderr
