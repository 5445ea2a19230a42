"""The corpus is read with care, and a case's folder is a function of its entry and the model."""

from pathlib import Path

import attrs
import pytest
from tests.support.models.copied_log import UNCLEAN
from tests.support.traces import evaluator, violation

from isr_trace.case_folder import case_files, index, stale, tell, write_files
from isr_trace.cases import Case, load_cases
from isr_trace.explain import explain
from isr_trace.itf import read_itf, trace_from_text
from isr_trace.trace import TraceError

CASES = Path(__file__).resolve().parents[2] / "counterexamples" / "cases" / "cases.toml"

ENTRY = """
[[case]]
name = "lost-write"
title = "A write is lost"
tracker = ["KAFKA-1"]
design = "unclean"
property = "acked-survives"
settings = { replicas = 2, min_insync = 1, unclean = true }
fixed_by = { design = "clean", settings = { unclean = false } }
result = "It is gone."
why_fails = "Nobody in sync was left."
why_missed = "Nobody went down."
fix = "Elect only who is in sync."
public = "The same."
"""


def loaded(tmp_path: Path, text: str) -> Case:
    (tmp_path / "cases.toml").write_text(text, encoding="utf-8")
    return load_cases(tmp_path / "cases.toml").cases[0]


def test_the_corpus_of_this_repository_can_be_read() -> None:
    corpus = load_cases(CASES)
    assert corpus.cases
    assert corpus.case(corpus.cases[0].name) is corpus.cases[0]
    with pytest.raises(TraceError, match="there is no case 'x'"):
        corpus.case("x")


def test_a_case_gives_the_commands_that_find_it_and_that_do_not(tmp_path: Path) -> None:
    case = loaded(tmp_path, ENTRY)
    expected = "insync check unclean --replicas 2 --min-insync 1 --unclean on --property acked-survives"
    assert case.command == expected
    assert case.fixed_command == expected.replace("check unclean", "check clean").replace("on --p", "off --p")


def test_a_case_may_leave_actions_out(tmp_path: Path) -> None:
    case = loaded(tmp_path, ENTRY.replace("fixed_by", 'without = ["follower_fetches", "x"]\nfixed_by'))
    assert case.without == ("follower_fetches", "x")
    for said in (case.command, case.fixed_command):
        assert said.endswith(" --without follower_fetches --without x --property acked-survives")
    with pytest.raises(TraceError, match="is about acked-survives on unclean without follower_fetches, x, the trace"):
        tell(case, violation(UNCLEAN), evaluator(UNCLEAN))
    files = case_files(case, violation(UNCLEAN), explain(violation(UNCLEAN), evaluator(UNCLEAN)))
    assert "`unclean` without `follower_fetches`, `x` breaks `acked-survives`" in files["README.md"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ENTRY.replace("fixed_by", "without = 1\nfixed_by"), "without of case 'lost-write' should be a list"),
        ("[[case", "not TOML"),
        ("cases = 1", "the unknown key 'cases'; known are case, waiting"),
        ("case = 1", "case should be a list"),
        (ENTRY.replace('"lost-write"', '"Lost Write"'), "should be small letters"),
        (ENTRY.replace('result = "It is gone."', ""), "case 'lost-write' lacks 'result'"),
        (ENTRY.replace('"It is gone."', '" "'), "'result' of case 'lost-write' is empty"),
        (ENTRY.replace('"It is gone."', "7"), "'result' of case 'lost-write' should be a string"),
        (ENTRY.replace("why_fails", "why_fail"), "the unknown key 'why_fail'"),
        (ENTRY.replace("fix =", "# fix ="), "should have both 'fix' and 'fixed_by', or neither"),
        (ENTRY.replace("replicas = 2", "replicas = 2.5"), "replicas should be a number, a string"),
        (ENTRY + ENTRY, "two entries are named 'lost-write'"),
        (ENTRY + '[[waiting]]\nname = "KAFKA-2"\nbug = "x"', "waiting 'KAFKA-2' lacks 'needs'"),
    ],
)
def test_a_mistake_in_the_corpus_is_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError) as error:
        loaded(tmp_path, text)
    assert said in str(error.value)
    assert "cases.toml" in str(error.value)


def test_a_corpus_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none\.toml: cannot be read: No such file"):
        load_cases(tmp_path / "none.toml")


def test_a_folder_tells_the_case_from_result_to_public_specifications(tmp_path: Path) -> None:
    files = tell(loaded(tmp_path, ENTRY), violation(UNCLEAN), evaluator(UNCLEAN))
    readme = files["README.md"]
    assert readme.startswith("# A write is lost (KAFKA-1)\n")
    headings = [line for line in readme.splitlines() if line.startswith("## ")]
    assert headings == [
        "## Result",
        "## Property",
        "## Steps",
        "## Minimality",
        "## Reproduce",
        "## Why checking missed it before",
        "## Why it fails",
        "## What fixed it",
        "## What the public specifications find",
    ]
    for said in (
        "**VIOLATED**: `unclean` breaks `acked-survives` in 5 steps.",
        "| T2 | `leader_shrinks_isr(r=r1, f=r2)` | r1 | `isr - r2` |",
        "2. The leader r1 puts r2, which is behind, out of the in-sync set.",
        "5 steps, and no shorter trace exists.",
        "| T3 | all else happens, and `acked-survives` holds |",
        "insync show counterexamples/cases/lost-write/trace.itf.json",
        "r = r2, m = 0: leads(r2) & acked.has(0) => holds(r2, 0)  fails",
        "At the same bounds `clean` keeps the property:",
    ):
        assert said in readme
    assert ".py:" not in readme, "a line of the model that moves does not outdate the folder"
    assert trace_from_text(files["trace.itf.json"]) == violation(UNCLEAN)


def test_a_folder_is_compared_file_by_file(tmp_path: Path) -> None:
    files = tell(loaded(tmp_path, ENTRY), violation(UNCLEAN), evaluator(UNCLEAN))
    folder = tmp_path / "lost-write"
    assert stale(folder, files) == ["README.md", "trace.itf.json"]
    write_files(folder, files)
    assert stale(folder, files) == []
    assert read_itf(folder / "trace.itf.json").property_name == "acked-survives"
    (folder / "README.md").write_text("other", encoding="utf-8")
    assert stale(folder, files) == ["README.md"]


def test_a_trace_of_something_else_does_not_become_the_case(tmp_path: Path) -> None:
    other = attrs.evolve(loaded(tmp_path, ENTRY), design="clean")
    with pytest.raises(TraceError, match="lost-write is about acked-survives on clean, the trace about"):
        tell(other, violation(UNCLEAN), evaluator(UNCLEAN))


def test_where_nothing_was_to_be_fixed_the_folder_says_so(tmp_path: Path) -> None:
    case = attrs.evolve(loaded(tmp_path, ENTRY), fixed_by=None, fix="")
    readme = tell(case, violation(UNCLEAN), evaluator(UNCLEAN))["README.md"]
    assert "Nothing: this is what the setting means" in readme


def test_the_index_lists_every_case_and_what_waits(tmp_path: Path) -> None:
    waiting = '\n[[waiting]]\nname = "KAFKA-2"\nbug = "A | B"\nneeds = "two controllers"\n'
    (tmp_path / "cases.toml").write_text(ENTRY + waiting, encoding="utf-8")
    written = index(load_cases(tmp_path / "cases.toml"), {"lost-write": violation(UNCLEAN)})
    assert "| [lost-write](lost-write/README.md) | A write is lost | `unclean` | `acked-survives` | 5 |" in written
    assert "| KAFKA-2 | A \\| B | two controllers |" in written
