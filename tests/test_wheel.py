"""The wheel: built, installed into an environment of its own, and used where there is no checkout.

Without it a verb would go on to read a file of the checkout that no wheel has, and only those who install it would see.
"""

import json
import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.support.histories import Story

pytestmark = pytest.mark.processes

TOP = Path(__file__).resolve().parents[1]
AUDIT = TOP / "docs" / "examples" / "audit"
VERSION = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
HELP = "from insync_cli.main import VERBS, main; raise SystemExit(max(main([verb, '--help']) for verb in VERBS))"
IN_TURN = """
import contextlib, io, json, sys
from insync_cli.main import main
answers = []
for command in json.loads(sys.argv[1]):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = main(command.split())
        except SystemExit as ended:
            code = ended.code or 0
    answers.append([code, said.getvalue()])
print(json.dumps(answers))
"""
"""One process for all, for to start one takes longer than most of what is asked."""
JAVA = """
from isr_found import BUGS, JAVA_ROOT
from isr_found.units import SOURCES, UNITS
files = [JAVA_ROOT / p / 'insync' / 'found' / p / f'{b.scenario}.java' for b in BUGS.values() for p in b.places]
files += [SOURCES / (t.partition('#')[0].replace('.', '/') + '.java') for u in UNITS.values() for t in u.messages]
missing = [str(file) for file in files if not file.is_file()]
raise SystemExit(f'not there: {missing}' if missing else 0)
"""
PYTHON = """
import insync
answer = insync.check('kafka-0.8', properties='acked-survives')
assert (answer.exit_code, answer.verdict) == (12, 'VIOLATED'), answer
assert 'data:text/html' in answer._repr_html_()
assert insync.history('history.jsonl').exit_code == 12
"""


def run(*command: str | Path, cwd: Path) -> tuple[int, str]:
    """The exit code and all that was printed; the environment names no source root."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def install(folder: Path) -> Path:
    """An environment with the wheel and what it requires, and with nothing else that these tests have."""
    environment, wheels = folder / "environment", folder / "wheels"
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    steps: list[tuple[str | Path, ...]] = [
        (*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, TOP),
        (sys.executable, "-m", "venv", "--without-pip", environment),
    ]
    for step in steps:
        assert run(*step, cwd=folder)[0] == 0, step
    (wheel,) = wheels.iterdir()
    step = (*pip, "--python", environment / "bin" / "python", "install", "--no-deps", "--no-index", wheel)
    assert run(*step, cwd=folder)[0] == 0
    (packages,) = environment.glob("lib/python3*/site-packages")
    (of_wheel,) = (d for d in metadata.distributions(path=[str(packages)]) if d.name == "insync")
    for distribution in required_distributions(of_wheel).values():
        link(distribution, packages)
    return environment / "bin"


def required_distributions(distribution: metadata.Distribution) -> dict[str, metadata.Distribution]:
    """What it requires without extras, and what these require, by name, as it is installed where these tests run."""
    required, texts = dict[str, metadata.Distribution](), list(distribution.requires or ())
    while texts:
        requirement = Requirement(texts.pop())
        if requirement.name in required or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        required[requirement.name] = metadata.distribution(requirement.name)
        assert requirement.specifier.contains(required[requirement.name].version, prereleases=True), requirement
        texts += required[requirement.name].requires or ()
    return required


def link(distribution: metadata.Distribution, packages: Path) -> None:
    """Its modules and its metadata, where the environment looks for them. An install would ask an index for them."""
    for name in {path.parts[0] for path in distribution.files or ()} - {"..", "__pycache__"}:
        (packages / name).symlink_to(Path(str(distribution.locate_file(name))))


COMMANDS: dict[str, tuple[int, str]] = {
    "check kafka-0.8 --property acked-survives": (12, "acked-survives violated"),
    "show jepsen-2013 --html story.html": (0, "1 trace"),
    "explain jepsen-2013": (0, ""),
    "minimise jepsen-2013": (0, "written to trace.minimal.itf.json"),
    "mutate kip-966 --replicas 2 --log 1 --max-states 10 --quiet": (20, "was not explored to the end"),
    "report --quick --no-pages --gallery --max-states 30 --quiet": (0, "6 stories, 12 scenes"),
    "found": (0, "6 ways to lose an acknowledged record"),
    "found --help": (0, "usage: insync found"),
    "conform --sut kafka --help": (0, "usage: insync conform"),
    "kafka versions": (0, "12 releases can be driven"),
    f"audit --describe {AUDIT / 'topics.txt'} {AUDIT / 'features.txt'} {AUDIT / 'server.properties'}": (
        2,
        "2 of 3 topics",
    ),
    "history history.jsonl": (12, "lost-write"),
}
"""What is run, in this order, with its exit code and a part of what it prints."""


def test_what_works_in_a_checkout_works_from_the_wheel(tmp_path: Path) -> None:
    bin_folder, here = install(tmp_path), tmp_path / "here"
    here.mkdir()
    history = Story(acks="all").send(1, 0).send(2, 1).final({1: 2})
    (here / "history.jsonl").write_text("\n".join(history.lines), encoding="utf-8")
    wrong: list[str] = []
    assert run(bin_folder / "insync", "--version", cwd=here) == (0, f"insync {VERSION}\n")
    code, text = run(bin_folder / "python", "-c", IN_TURN, json.dumps([*COMMANDS]), cwd=here)
    assert code == 0, text
    for (command, (code, says)), (answer, told) in zip(COMMANDS.items(), json.loads(text), strict=True):
        if answer != code or says not in told or "there is no docs/" in told:
            wrong.append(f"insync {command}: {answer}, {told[-300:]}")
    assert not wrong, "\n".join(wrong)
    for program in (HELP, JAVA, PYTHON):
        code, text = run(bin_folder / "python", "-c", program, cwd=here)
        assert code == 0, text
