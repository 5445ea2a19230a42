"""The command line as a process: what a shell sees."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

TOP = Path(__file__).resolve().parents[2]
ROOTS = ("", "spec", "engines", "counterexamples", "insync")

PROGRAM = """
import sys, types
from tests.support.models import ticket_desk
registry = types.ModuleType("isr_protocol.by_name")
vars(registry)["DESIGNS"] = ticket_desk.DESIGNS
sys.modules["isr_protocol.by_name"] = registry
from insync_cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def started(command: str, folder: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(TOP / root) for root in ROOTS)}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *command.split()],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_exit_code_of_the_process_is_the_answer(tmp_path: Path) -> None:
    process = started("check hasty --engine reference --json - --property never-ahead", tmp_path)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (12, "")
    assert json.loads(out)["verdict"] == "VIOLATED"


def test_ctrl_c_ends_a_long_run_with_what_is_known(tmp_path: Path) -> None:
    bounds = "--tickets 200 --rush 100 --paper-jams 3 --reopen on"
    process = started(f"check careful --engine reference --out out {bounds}", tmp_path)
    while not (tmp_path / "out").exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (20, "")
    assert "BUDGETED - stopped by Ctrl-C after" in out
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["verdict"] == "BUDGETED"
    assert run["stats"]["distinct"] > 0


def test_a_reader_that_goes_away_is_no_bug(tmp_path: Path) -> None:
    process = started("designs", tmp_path)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert "Traceback" not in process.stderr.read()
    assert process.wait(timeout=60) in (0, 141)


@pytest.mark.parametrize(("words", "code"), [("designs", 0), ("designs --no-such-option", 64)])
def test_whoever_waits_for_the_exit_code_does_not_wait_for_better_machine_code(words: str, code: int) -> None:
    """A thread of the native engine, which a busy machine lets go on for minutes."""
    program = "import sys, threading, time\nthreading.Thread(target=time.sleep, args=(300,)).start()\n"
    program += f"from insync_cli.main import command\nsys.argv = ['insync', *{words.split()!r}]\ncommand()\n"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(TOP / root) for root in ROOTS)}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120, cwd=TOP
    )
    assert ran.returncode == code, ran.stderr
    assert (ran.stdout or ran.stderr).endswith("\n")
    assert "kip-966" in ran.stdout or "no-such-option" in ran.stderr
