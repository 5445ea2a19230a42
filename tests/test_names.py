"""Names can be searched: none is a bare participle, but where a file or a model's hash has it.

This is asked of our Python but for the tests, and of what Java and the pages' JavaScript declare. The tests break
it with some 930 names (229 functions, 209 parameters, 353 locals and the rest): nobody has renamed these.

Without this `found`, `told` and `asked` come back, one parameter at a time, until hundreds of places say them and no
search finds anything.
"""

from pathlib import Path

import pytest
from tests.support import declarations, names

TOP = Path(__file__).resolve().parent.parent
CODE = ("spec", "engines", "impl", "clusters", "refinement", "counterexamples", "pipeline", "insync", "bench")
ROOTS = (*CODE, "docs/examples", "docs/site")
FILES = sorted(path for root in ROOTS for path in (TOP / root).rglob("*.py"))
OTHER_ROOTS = ("impl/apache_kafka", "found/java", "counterexamples/isr_visual/script", "counterexamples/isr_report")
OTHER_FILES = sorted(path for root in OTHER_ROOTS for end in ("java", "js") for path in (TOP / root).rglob(f"*.{end}"))

MODEL = {
    "spec/isr_protocol/designs/calm.py": {"heard", "told"},
    "spec/isr_protocol/designs/unclean_recovery.py": {"answered", "BALANCED"},
    "spec/isr_protocol/designs/wider_state.py": {
        "Adjusted",
        "Amended",
        "Answered",
        "Calmed",
        "amended",
        "misplaced",
        "told",
    },
    "spec/isr_protocol/elections.py": {"awaited"},
    "spec/isr_protocol/faults.py": {"struck"},
    "spec/isr_protocol/promises/room.py": {"SPENT", "REJOINED", "unobserved", "rejoined"},
    "spec/isr_protocol/promises/safety.py": {"met"},
    "spec/isr_protocol/proof/logs.py": {"extended"},
    "spec/isr_protocol/state.py": {
        "REQUESTED",
        "ANSWERED",
        "ASKED",
        "UNDEFINED",
        "REFUSED",
        "Unnoticed",
        "unnoticed",
        "UNNOTICED",
    },
}
"""Definitions, variables and values of the model: part of its hash, and of every stored proof, answer and trace."""

KEYS = {
    "clusters/isr_audit/bugs.py": {"affected", "mended", "reproduced"},
    "clusters/isr_audit/condition.py": {"remembered", "unheard"},
    "clusters/isr_experiment/conclusions.py": {"dropped", "lost", "validated"},
    "clusters/isr_experiment/verdicts.py": {"attempted", "lost", "recovered", "sent", "survived"},
    "counterexamples/isr_visual/state_graph.py": {"broken"},
    "pipeline/isr_pipeline/histories/plain.py": {"unseen"},
    "pipeline/isr_pipeline/store.py": {"expanded", "found", "refused", "remade", "sent", "spent", "taken"},
    "refinement/isr_anomalies/history.py": {"unseen"},
    "refinement/isr_anomalies/operations.py": {"unseen"},
    "refinement/isr_anomalies/results.py": {"attempted", "forbidden", "lost", "recovered"},
}
"""Fields that are written into files, or read from them, under these names."""

OTHERS = {
    "engines/isr_lang/state.py": {"primed"},  # State(primed=True), which the file of anybody's design may say
    "insync/insync_cli/conformance/found.py": {"fixed", "found"},  # insync found --fixed
    "refinement/isr_conform/kit.py": {"Refused", "copied"},  # docs/conform.md: adapters raise and override them
    "impl/isr_broker/core/inputs.py": {"Received", "Retained", "Written"},  # what happened, as all inputs of cores say
}

EXCEPTIONS = MODEL | KEYS | OTHERS

OTHER_EXCEPTIONS = {("impl/apache_kafka/src/conform/insync/conform/Refused.java", "Refused")}  # as in the kit


def bare(path: Path) -> dict[str, int]:
    """The bare participles among the names of a file, the file's own included, and the line of each."""
    source = path.read_text(encoding="utf-8")
    stem = {path.stem: 1} if names.is_bare(path.stem) else {}
    return {n.name: n.line for n in reversed(names.bare_names(source))} | stem


@pytest.mark.long
def test_no_name_is_a_bare_participle() -> None:
    strangers = [
        f"{path.relative_to(TOP)}:{line}: {name}"
        for path in FILES
        for name, line in bare(path).items()
        if name not in EXCEPTIONS.get(path.relative_to(TOP).as_posix(), ())
    ]
    assert not strangers, "say the noun:\n" + "\n".join(strangers)


def test_every_exception_is_needed() -> None:
    assert {place: set(bare(TOP / place)) for place in EXCEPTIONS} == EXCEPTIONS


@pytest.mark.long
def test_what_a_docstring_quotes_is_a_name() -> None:
    """After a rename a docstring that has the old name leads nobody to the new one."""
    known = {name for exceptions in EXCEPTIONS.values() for name in exceptions}
    strangers = [
        f"{path.relative_to(TOP)}:{line}: `{word}`"
        for path in FILES
        for line, word in names.words_without_name(path.read_text(encoding="utf-8"))
        if word not in known
    ]
    assert not strangers, "no name of this file:\n" + "\n".join(strangers)


def test_a_planted_quote_of_no_name_is_seen() -> None:
    renamed = 'def f(line: str) -> None:\n    """Prints `told`."""'
    assert list(names.words_without_name(renamed)) == [(2, "told")]
    assert not list(names.words_without_name(renamed.replace("line:", "told:")))
    assert not list(names.words_without_name(renamed.replace("`told`", "what was told")))


def declared_participles(path: Path) -> dict[str, int]:
    """The bare participles that a file of Java or JavaScript declares, and the line of each."""
    declared = declarations.of_java if path.suffix == ".java" else declarations.of_script
    return {d.name: d.line for d in declared(path.read_text(encoding="utf-8")) if names.is_bare(d.name)}


def test_no_java_and_no_script_declares_a_bare_participle() -> None:
    participles = {
        (path.relative_to(TOP).as_posix(), name): line
        for path in OTHER_FILES
        for name, line in declared_participles(path).items()
    }
    strangers = [
        f"{file}:{line}: {name}" for (file, name), line in participles.items() if (file, name) not in OTHER_EXCEPTIONS
    ]
    assert not strangers, "say the noun:\n" + "\n".join(strangers)
    assert participles.keys() >= OTHER_EXCEPTIONS


@pytest.mark.long
def test_every_word_of_the_field_is_a_name_of_ours() -> None:
    """A word that nobody uses would let the next one in without a reason."""
    words = {n.name.strip("_").lower() for path in FILES for n in names.participles(path.read_text(encoding="utf-8"))}
    assert not names.FIELD - words


# The rule sees what it is there for


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("class Told: ...", "class"),
        ("def told(line: str) -> None: ...", "function"),
        ("def tell(told: str) -> None: ...", "parameter"),
        ("tell = lambda x: x\nasked = 1", "variable"),
        ("ADDED, FOUND = 1, 2", "variable"),
        ("for told in range(3): ...", "variable"),
        ("if True:\n    with open(name) as given: ...", "variable"),
        ("from isr_protocol.promises import safety as promised", "alias"),
        ("def f() -> None:\n    import json as known", "alias"),
        ("def shares(used: int) -> None: ...", "parameter"),
        ("class Answer:\n    given: int", "field"),
        ("class Answer:\n    def __init__(self) -> None:\n        self._known = 1", "field"),
        ("class Answer:\n    @classmethod\n    def begin(cls) -> None:\n        cls.told = 1", "field"),
        ("match x:\n    case told: pass", "variable"),
        ("def f() -> None:\n    global told\n    told = 1", "variable"),
        ("def sought() -> None: ...", "function"),
        ("class Answer:\n    async def asked(self) -> None: ...", "function"),
        ("class Line:\n    overtaken: bool", "field"),
        ("class Partition:\n    unread: tuple[str, ...]", "field"),
        ("def rebuilt(word: str) -> None: ...", "function"),
        ("def f() -> int:\n    found = 1\n    a = 1\n    b = 1\n    c = 1\n    d = 1\n    return found", "local"),
    ],
)
def test_a_planted_participle_is_seen(source: str, kind: str) -> None:
    assert [name.kind for name in names.bare_names(source)] == [kind]


@pytest.mark.parametrize(
    "source",
    [
        "def line_for_answer(message: str) -> str: ...",
        "def f() -> int:\n    found = 1\n    return found",
        "def f() -> list[int]:\n    a = [found for found in ()]\n    b = 1\n    c = 1\n    d = 1\n    e = 1\n"
        "    return [found for found in a]",
        "class EpochAssigned: ...",
        "class Row(TypedDict):\n    found: int",
        "class Verdict(Enum):\n    REFUSED = 1",
        "def f(fenced: bool, need: int) -> None: ...",
        "def reset(offset: int, reread: bool, outcome: int) -> None: ...",
    ],
)
def test_nouns_short_locals_keys_and_words_of_the_field_are_not(source: str) -> None:
    assert names.bare_names(source) == ()


JAVA = """
package insync.example;

/** What it told: a comment is none. */
final class Machine<T> implements Told<T> {
  private static final String[] COPIED = {"asked", "given"};
  final Map<String, List<Integer>> heard = new HashMap<>();
  int seen;

  enum Ending {
    LOST(1),
    HELD(2);
    final int spent;
    Ending(int code) { spent = code; }
  }

  record Row(int name, Map<String, Integer> said) {}

  @SuppressWarnings({"unchecked", "found"})
  private static <T extends Comparable<T>> List<T> taken(List<T> given, int kept) throws Exception {
    String found = "no field";
    for (int left = 0; left < 3; left++) {
      Runnable done = () -> { int made = 1; };
    }
    return given;
  }
}
"""

SCRIPT = """
// told: a comment is none
const STYLED = ["fill"];
const marked = (kind, changed) => (changed ? `${kind} given` : kind);

function touched(changes) {
  const found = new Set();
  function combined(op) { return op; }
  return found;
}

class Scene {
  static drawn = 0;
  constructor(left) {
    this.seen = left;
    if (this.held === left) return;
  }
  async changed(role, replica) {
    return this.made;
  }
}
"""


def test_a_planted_participle_is_seen_in_java_and_in_a_script() -> None:
    java = [d.name for d in declarations.of_java(JAVA) if names.is_bare(d.name)]
    assert java == ["COPIED", "heard", "seen", "spent", "said", "taken"]
    script = [d.name for d in declarations.of_script(SCRIPT) if names.is_bare(d.name)]
    assert script == ["STYLED", "marked", "touched", "combined", "drawn", "seen", "changed"]


def test_a_declaration_has_its_line() -> None:
    assert declarations.Declaration(8, "seen") in list(declarations.of_java(JAVA))
    assert declarations.Declaration(13, "drawn") in list(declarations.of_script(SCRIPT))
