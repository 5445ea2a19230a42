"""`--design-file`: a design and a promise from a file of somebody's own, in the verbs that take the name of a design.

Without these a mistake in such a file would be a traceback, or a trace of such a design could not be played again.
"""

import json
import re
import shlex
from pathlib import Path

import pytest

from insync_cli.main import main

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLE = DOCS / "examples" / "joins_one_behind.py"
PAGE = (DOCS / "own-design.md").read_text(encoding="utf-8")
NAME = "joins-one-behind"
OWN = f"{NAME} --design-file joins_one_behind.py"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A working folder with the example of the docs in it."""
    monkeypatch.chdir(tmp_path)
    Path(EXAMPLE.name).write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path


def run(command: str) -> int:
    return main(shlex.split(command))


def found(folder: str = "x") -> dict[str, str]:
    lines = json.loads((Path(folder) / "run.json").read_text(encoding="utf-8"))["properties"]
    return {line["name"]: line["verdict"] for line in lines}


# The page of the docs


def test_the_page_shows_the_example_that_is_run() -> None:
    shown = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(shown) == 3
    text = EXAMPLE.read_text(encoding="utf-8")
    assert all(part.strip() in text for part in shown)


@pytest.mark.explores
@pytest.mark.usefixtures("folder")
def test_the_commands_of_the_page_do_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    told = re.findall(r"^    \$ insync (.+?)(?:    # exit (\d+))?$", PAGE, re.MULTILINE)
    lines = re.findall(rf"^    (insync \w+ {NAME}: .+)$", PAGE, re.MULTILINE)
    assert (len(told), len(lines)) == (7, 2)
    for command, code in told:
        if not command.startswith("graph"):  # it takes another program, dot
            assert run(command) == int(code or 0), command
    said = capsys.readouterr().out
    assert [line for line in lines if line not in said.splitlines()] == []
    assert Path("lost.html").stat().st_size > 100_000
    assert "--design-file joins_one_behind.py" in said


# What a promise speaks about

EMPTY_PROMISES = '''
from isr_lang import Bool, Step, always, forall, step
from isr_model import KIP_966
from isr_protocol.state import Record, Replica, State, holds

@always
def of_nothing(s: State) -> Bool:
    """Whatever is acknowledged where nothing is acknowledged is held."""
    return forall(
        (s.acked.has(m) & s.acked.is_empty()).implies(holds(s, r, m)) for r in Replica.all() for m in Record.all()
    )

@step
def nested(old: State, new: State) -> Bool:
    """The same of two states, one implication in another."""
    return forall(old.acked.has(m).implies(new.acked.is_empty().implies(old.acked.is_empty())) for m in Record.all())

@always
def of_something(s: State) -> Bool:
    """What is acknowledged is held by somebody who lives."""
    return forall(s.acked.has(m).implies(~s.alive.is_empty() | s.alive.is_empty()) for m in Record.all())

@always
def not_an_implication(s: State) -> Bool:
    """Nothing is said of what it speaks about."""
    return s.alive.is_empty() | ~s.alive.is_empty()

OWN = KIP_966.replacing("own", "Kafka, with promises of nothing", because="a test").promising(
    of_nothing, nested, of_something, not_an_implication
)
'''


@pytest.mark.explores
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("promise", "is_vacuous"),
    [
        ("of-nothing", True),
        ("nested", True),
        ("of-something", False),
        ("not-an-implication", False),
        ("of-something --without leader_appends", True),
    ],
)
def test_a_promise_of_ones_own_that_speaks_of_nothing_is_vacuous(promise: str, is_vacuous: bool) -> None:
    """It was HOLDS, for only Kafka's promises have premises that somebody wrote."""
    Path("own.py").write_text(EMPTY_PROMISES, encoding="utf-8")
    small = "--replicas 2 --log 1 --records 1 --epochs 2 --isr-changes 4 --crashes 1"
    assert (run(f"check own --design-file own.py {small} --property {promise} --out x") == 21) is is_vacuous
    assert (found()[promise.split()[0]] == "VACUOUS") is is_vacuous
    assert list(found()) == [promise.split()[0]], "the probe of what it speaks about is no answer of its own"


# Verbs


@pytest.mark.long
@pytest.mark.usefixtures("folder")
def test_a_bound_of_ones_own_is_an_option_and_decides() -> None:
    asked = "--property members-have-acked --quiet --out x"
    assert run(f"check {OWN} {asked} --slack 1") == 12
    assert run(f"check {OWN} {asked} --slack 0") == 0
    assert run(f"check {OWN} {asked} --slack 3") == 64


@pytest.mark.usefixtures("folder")
def test_a_promise_of_ones_own_is_off_where_it_is_not_made() -> None:
    assert run(f"check {OWN} --property members-have-acked --acks 1 --quiet --out x") == 21
    assert found() == {"members-have-acked": "VACUOUS"}


@pytest.mark.usefixtures("folder")
def test_the_design_is_known_to_one_command_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"designs {OWN}") == 0
    assert "rule caught_up_but_for_slack instead of caught_up" in capsys.readouterr().out
    assert run(f"designs {NAME}") == 64
    assert "--design-file brings others" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("command", "says"),
    [
        (f"sample {OWN} --count 1", "1 behaviour of 1 asked for"),
        (f"export {OWN} --murphi m.m", "m.m"),
        (f"traces {OWN} --count 2 --out traces", "2 traces"),
        (
            f"explain {{trace}} --design-file {EXAMPLE.name}",
            f"{NAME} breaks members-have-acked where the controller accepted",
        ),
        (f"minimise {{trace}} --design-file {EXAMPLE.name}", "no shorter one exists"),
        (f"show jepsen-2013 --html page.html --against {OWN}", "page.html"),
    ],
)
def test_other_verbs_know_it(command: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    if "{trace}" in command:
        assert run(f"check {OWN} --property members-have-acked --quiet --out x") == 12
    assert run(command.format(trace="x/members-have-acked.itf.json")) == 0
    assert says in capsys.readouterr().out


@pytest.mark.explores
@pytest.mark.usefixtures("folder")
def test_each_cell_of_a_matrix_tells_the_command_that_makes_it_again() -> None:
    plan = Path("plan.toml")
    plan.write_text(
        f'designs = ["{NAME}"]\npromises = ["acked-survives", "members-have-acked"]\n'
        "bounds = { replicas = 2, isr_changes = 3, slack = 1 }\n"
        'settings = { min_insync = ["1"], acks = ["all"] }\n'
        '[[fault]]\nname = "session"\nsays = "one session ends"\nbudget = { sessions_lost = 1 }\n',
        encoding="utf-8",
    )
    assert run(f"matrix --plan plan.toml --design {OWN} --workers 1 --quiet --out m") == 0
    (cell,) = json.loads(Path("m/matrix.json").read_text(encoding="utf-8"))["cells"]
    assert {p["name"]: p["verdict"] for p in cell["promises"]} == {
        "acked-survives": "VIOLATED",
        "members-have-acked": "VIOLATED",
    }
    assert main([*cell["command"][1:], "--quiet", "--out", "again"]) == 12


@pytest.mark.usefixtures("folder")
def test_an_action_of_ones_own_is_dropped_guard_by_guard() -> None:
    Path("small.py").write_text(
        HEAD
        + "@action\n"
        + "def forgets(old: State, new: State, r: Replica) -> Step:\n"
        + '    """A replica forgets."""\n'
        + "    return (old.log[r].length() == 0, old.high_watermark[r] > 0, new.log[r] == old.log[r])\n"
        + "KEPT = (a.name for a in KIP_966.actions if a.name == 'leader_appends')\n"
        + "_LESS = KIP_966.without(*(a.name for a in KIP_966.actions if a.name != 'leader_appends'))\n"
        + 'SMALL = _LESS.replacing("small", "small", because="small.").adding(forgets)\n',
        encoding="utf-8",
    )
    bounds = "--replicas 1 --min-insync 1 --epochs 0 --isr-changes 0 --crashes 0"
    assert run(f"mutate small --design-file small.py {bounds} --workers 1 --json m.json --quiet") == 22
    tried = {m["action"] for m in json.loads(Path("m.json").read_text(encoding="utf-8"))["mutants"]}
    assert tried == {"leader_appends", "forgets"}


@pytest.mark.usefixtures("folder")
def test_verbs_that_run_the_brokers_code_say_that_it_has_no_such_design(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"simulate {OWN}") == 64
    assert f"insync check {NAME} --design-file joins_one_behind.py --simulate" in capsys.readouterr().err
    assert run(f"replay {OWN}") == 65
    assert f"not with {NAME}" in capsys.readouterr().err


# Traces


@pytest.mark.long
@pytest.mark.usefixtures("folder")
def test_a_trace_says_which_file_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"check {OWN} --property members-have-acked --quiet --out x") == 12
    trace = "x/members-have-acked.itf.json"
    needed = f"its design {NAME} is in joins_one_behind.py; add --design-file joins_one_behind.py"
    for verb, shown in (("show", True), ("explain", False), ("minimise", False)):
        capsys.readouterr()
        assert run(f"{verb} {trace}") == 65
        said = capsys.readouterr()
        assert said.err.startswith(f"insync: {trace}: {needed}")
        assert ("controller_accepts_alter_partition" in said.out) is shown
    assert run(f"show {trace} --design-file joins_one_behind.py") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("folder")
def test_a_trace_of_another_version_of_the_file_is_told_from_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"check {OWN} --property members-have-acked --quiet --out x") == 12
    text = EXAMPLE.read_text(encoding="utf-8")
    Path(EXAMPLE.name).write_text(text.replace("+ SLACK", "+ SLACK + 0"), encoding="utf-8")
    assert run(f"show x/members-have-acked.itf.json --design-file {EXAMPLE.name}") == 65
    assert f"another version of {NAME}" in capsys.readouterr().err


# What is wrong with a file

HEAD = """\
from isr_lang import Bool, Step, action, always, bound, define, forall, var
from isr_model import KIP_966
from isr_protocol.state import Replica, State
"""
MINE = 'MINE = KIP_966.replacing("mine", "mine", because="mine.")'
PROMISE = "@always\ndef mine(s: State) -> Bool:\n    return "


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = (\n", "mine.py:1: it is not Python: '(' was never closed"),
        (HEAD, "mine.py: no design is in it; make one by MINE = KIP_966.replacing("),
        (HEAD + "_" + MINE, "mine.py: no design is in it"),
        (HEAD + MINE.replace('"mine",', '"kip-966",', 1), "mine.py:4: there is a design 'kip-966' already"),
        (HEAD + MINE.replace('"mine",', '"keep-elr",', 1), "mine.py:4: there is a design 'keep-elr' already"),
        (HEAD + f"{MINE}\nMORE{MINE.removeprefix('MINE')}", "mine.py:5: there is a design 'mine' already"),
        (HEAD + MINE.replace('"mine",', '"My design",', 1), "mine.py:4: a design is named by small letters, digits"),
        (HEAD + MINE + ".without('leader_apends')", "mine.py:4: mine has no action 'leader_apends'; did you mean"),
        (HEAD + MINE + ".with_defaults(replicsa=2)", "mine.py:4: mine has no bound or setting 'replicsa'; did you"),
        (HEAD + MINE + ".with_defaults(replicas=99)", "mine.py:4: --replicas is a whole number from 1 to 7, not 99"),
        ("\n1 / 0\n", "mine.py:2: ZeroDivisionError: division by zero"),
        ("import no_such_module\n", "mine.py:1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("import sys\nsys.exit(3)\n", "mine.py:2: SystemExit: 3"),
        ("class Odd(Exception):\n    def __str__(self):\n        return 1 / 0\nraise Odd\n", "mine.py:4: Odd: <"),
        (HEAD + PROMISE + "3\n", "mine.py:5: mine returns a condition, not 3"),
        (HEAD + PROMISE + "s.nosuch\n", "mine.py:6: there is no variable 'nosuch'"),
        (HEAD + PROMISE + "s.alive.has(s.controller_isr)\n", "mine.py:6: "),
        (
            HEAD + PROMISE + "(s.controller_epoch == 1) and s.alive.is_empty()\n",
            "mine.py:6: a symbolic value is neither true nor false here. Write a & b",
        ),
        (
            HEAD + PROMISE.replace("mine", "leader_in_isr") + f"s.alive.is_empty()\n{MINE}.promising(leader_in_isr)",
            ":5: ",
        ),
        (
            HEAD + PROMISE.replace("mine", "type_ok") + f"s.alive.is_empty()\n{MINE}.promising(type_ok)",
            "mine.py:7: mine has two properties 'type-ok'",
        ),
        (
            HEAD
            + "class Mine(State):\n    more: Bool = var('more')\n"
            + PROMISE.replace("State", "Mine")
            + f"s.more\n{MINE}.promising(mine)\n",
            "mine.py:9: it speaks of a variable 'more', which mine does not have",
        ),
        (
            HEAD
            + f"N = bound('log', 'n', default=1, high=2)\n{PROMISE}s.alive.size() <= N + 5\n{MINE}.promising(mine)",
            "mine.py:8: mine has two bounds or settings 'log'",
        ),
        (
            HEAD
            + f"N = bound('out', 'n', default=1, high=2)\n{PROMISE}s.alive.size() <= N + 5\n{MINE}.promising(mine)",
            "mine.py: a bound or setting has the name of an option of insync check (--out)",
        ),
    ],
)
def test_a_mistake_in_a_file_is_one_sentence_with_its_line(
    folder: Path, text: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "mine.py").write_text(text, encoding="utf-8")
    assert run("check mine --design-file mine.py --out x") == 65
    said = capsys.readouterr()
    assert said.out == ""
    assert says in said.err
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith("insync: mine.py")
    assert not (folder / "x").exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("nosuch.py", "nosuch.py: cannot be read: no such file or directory"),
        (".", ".: cannot be read: is a directory"),
        ("binary.py", "binary.py: it is not text in UTF-8"),
    ],
)
def test_a_file_that_is_none_is_one_sentence(file: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("binary.py").write_bytes(b"\xff\xfe\x00")
    for verb in ("check", "designs", "show --html x.html --against"):
        assert run(f"{verb} mine --design-file={file}") == 65
        assert capsys.readouterr().err == f"insync: {says}\n"


def test_what_a_file_prints_does_not_mix_with_the_answer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.py").write_text(f"{HEAD}print('hello')\n{MINE}\n", encoding="utf-8")
    assert run("designs mine --design-file mine.py --json -") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["designs"][0]["name"] == "mine"
    assert said.err == "hello\n"


@pytest.mark.usefixtures("folder")
def test_without_a_file_after_it_the_option_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check kip-966 --design-file") == 64
    assert "--design-file: expected one argument" in capsys.readouterr().err
