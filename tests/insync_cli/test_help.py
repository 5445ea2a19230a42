"""What every verb says about itself, and that asking is quick."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from insync_cli import registry
from insync_cli.main import VERBS, main


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(desk: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    assert main([verb, "--help"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: insync {verb}")
    assert f"example:\n  insync {verb}" in said
    assert "--json" in said


def test_the_options_are_those_of_the_design_with_its_defaults(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "hasty", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "--tickets N Tickets on the roll (default 2, 1 to 200)" in said
    assert "--calls 0|1|all How often a ticket is called (default 1)" in said
    assert "--reopen off|on Whether a closed desk opens again (default off)" in said
    main(["check", "empty", "--help"])
    assert "--tickets" not in capsys.readouterr().out


def test_the_top_lists_verbs_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"\n  {verb} " in said for verb in VERBS)
    assert all(f"\n  {code:>3}  " in said for code in (0, 10, 11, 12, 13, 20, 21, 22, 64, 65, 70))


def test_no_verb_at_all_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 64
    assert "usage: insync VERB" in capsys.readouterr().out


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"insync {version('insync')}\n"


@pytest.mark.processes
def test_help_imports_neither_model_nor_engine_nor_tables() -> None:
    heavy = "{'isr_lang', 'isr_protocol.designs.history', 'isr_check', 'rich', 'numpy', 'llvmlite'}"
    code = f"import sys; from insync_cli.main import main; main(['--help']); print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")


@pytest.mark.parametrize("design", registry.designs())
def test_the_constants_of_every_design_are_options(capsys: pytest.CaptureFixture[str], design: str) -> None:
    constants = registry.design_named(design).constants()
    for verb in ("check", "prove", "sample", "export", "mutate"):
        assert main([verb, design, "--help"]) == 0
        said = capsys.readouterr().out
        assert all(f"\n  {c.option} " in said for c in constants)


@pytest.mark.explores
def test_every_design_is_listed_with_what_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["designs"]) == 0
    said = capsys.readouterr().out
    for name, design in registry.designs().items():
        assert f"{name}: {design.summary}\n" in said
        assert main(["designs", name]) == 0


def test_check_says_that_bounds_follow_the_faults_and_prove_that_bounds_are_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["check", "kip-966", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "the bounds that are not given are larger than these defaults" in said
    main(["prove", "kip-966", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "records that fit into a log (default any, 1 to 6)" in said
    assert "consumers (default 1, 0 to 1)" in said
    assert "at most for one attempt of the solver at one question" in said
