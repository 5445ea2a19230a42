"""The shape of this repository, as tests: which way imports point, how long functions are, and what is absent.

The contracts on imports are in pyproject.toml, and import-linter checks them. Every other rule is a function from one
source text to its findings. One test applies a rule to the whole tree and another plants a violation, so that a rule
which stopped seeing anything is noticed.
"""

import ast
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import cast

import pytest
from importlinter.domain.contract import Contract
from tests.support import import_graph

TOP = Path(__file__).resolve().parent.parent
ROOTS = ("spec", "engines", "impl", "clusters", "refinement", "counterexamples", "pipeline", "insync")

PACKAGES = import_graph.root_packages()

LANGUAGE = {
    "isr_lang.scalars": {"isr_lang.containers"},
    "isr_lang.types": {"isr_lang.nodes"},
    "isr_lang.nodes": {"isr_lang.printing"},
    "isr_lang.design": {"isr_lang.printing"},
}
"""The circles of the language, which pyproject.toml explains: each import is late, or for type checkers alone."""

MODEL = ("isr_model", "isr_protocol", "kraft_model", "kraft_protocol", "controller_model", "controller_protocol")

LINES_PER_FUNCTION = 70

PROTOCOL_WORDS = frozenset(
    re.findall(
        r"\w+",
        """kafka kraft zookeeper jepsen kip kips isr isrs elr replica replicas leader leaders leadership
        follower followers watermark watermarks hw leo broker brokers controller controllers unclean
        ack acks acked""",
    )
)
"""What the language and the engines must not know. Words with a second meaning there (partition of the
visited set, epoch, offset, record, log, fetch) are left out: they would forbid honest sentences."""

ENGINE_WORDS = frozenset(
    re.findall(
        r"\w+",
        """z3 smt llvm llvmlite numpy numba ctypes spark pyspark tlc rumur murphi apalache quint
        kernel kernels""",
    )
)

RANDOM_MODULES = frozenset({"random", "secrets", "uuid", "numpy.random"})
RANDOM_ALLOWED = (
    "clusters/isr_sim",
    "engines/isr_check/sample",
    "refinement/isr_conform/edge_cover",
    "clusters/isr_experiment/nemesis",
    "impl/isr_broker/storage/meta_properties",
    "impl/isr_broker/core/topics",
    "impl/isr_broker/server",
    "impl/isr_broker/voter_server",
)
"""The simulator's scheduler, the explorer's sampler, and the walks of
`insync conform`; all take a seed. The last four draw ids: of a new cluster, and of a topic, from bits that a core is
given, or a process has of the system, and the time-outs of elections."""

ANY_ALLOWED = (
    "engines/isr_lang/nodes",  # what a node carries beside its arguments depends on its operator
    "engines/isr_lang/state",  # var() has whatever type the annotation on its left says
    "engines/isr_check/reference",  # functions generated as text, and the values that they compute
    "engines/isr_check/smt/step_solver",  # z3 has no annotations
    "engines/isr_check/smt/terms/logic",  # z3 has no annotations
    "engines/isr_check/smt/solver",  # z3 has no annotations
    "engines/isr_check/smt/equal_goals",  # z3 has no annotations
    "engines/isr_check/smt/strategy",  # z3 has no annotations
)
"""Where Python cannot type what is there, each place with its reason."""


# The tree


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (TOP / folder).rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(TOP).as_posix()


def package_of(path: Path) -> str:
    """The import name a file belongs to: engines/isr_lang/x.py and engines/isr_lang.py are both isr_lang."""
    return path.relative_to(TOP).parts[1].removesuffix(".py")


def package_files(*packages: str) -> list[Path]:
    return [path for path in python_files(*ROOTS) if package_of(path) in packages]


def below(path: Path, places: Iterable[str]) -> bool:
    """Whether the file is one of the places: a module given without .py, or a folder."""
    parts = Path(relative(path)).with_suffix("").parts
    return any(parts[: len(Path(place).parts)] == Path(place).parts for place in places)


def findings(rule: Callable[[str], Iterable[str]], files: Iterable[Path]) -> list[str]:
    return [f"{relative(path)}:{found}" for path in files for found in rule(path.read_text(encoding="utf-8"))]


def report(found: list[str]) -> None:
    assert not found, "\n" + "\n".join(found)


# The rules


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(source)))


def imported_modules(source: str) -> Iterator[tuple[int, str]]:
    """Every absolute import as (line, dotted name), wherever it stands, also `import_module("literal")`."""
    for node in nodes(source):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in names)
            case _:
                pass
    yield from imports_by_name(source)


def imports_by_name(source: str) -> Iterator[tuple[int, str]]:
    for node in nodes(source):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name
            case _:
                pass


def ours_by_name(source: str) -> list[str]:
    """`import_module("isr_x")` is an import that import-linter does not see."""
    return [
        f"{line}: import {name} by a statement, so that the contracts on imports see it"
        for line, name in imports_by_name(source)
        if name.split(".")[0] in PACKAGES
    ]


def imports_through_a_root(source: str) -> list[str]:
    return [
        f"{line}: import {name.split('.', 1)[1]} directly, {name.split('.')[0]}/ is not a package"
        for line, name in imported_modules(source)
        if name.split(".")[0] in ROOTS and "." in name and not is_of_a_namesake(name)
    ] + [
        f"{line}: {name}/ is not a package"
        for line, name in imported_modules(source)
        if name in ROOTS and not is_of_a_namesake(name)
    ]


def is_of_a_namesake(name: str) -> bool:
    """Whether a name is of the package that a root has below its own name, and of none that stands beside it."""
    root, *path = name.split(".")
    beside = {file.parent.name for file in (TOP / root).glob("*/__init__.py")}
    return root in beside and not (path and path[0] in beside)


def long_functions(source: str) -> list[str]:
    functions = (
        (node, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in nodes(source)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return [
        f"{node.lineno}: {node.name} has {lines} lines, above {LINES_PER_FUNCTION}"
        for node, lines in functions
        if lines > LINES_PER_FUNCTION
    ]


OUR_PACKAGES = re.compile(rf"\b(?:{'|'.join(PACKAGES)})\b")
WORD = re.compile(r"[A-Z]+s?(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*")


def words_of(text: str) -> set[str]:
    """The lower-case words of names, strings and comments: high_watermark, HighWatermark and "high watermark"
    all say high and watermark, kip320 says kip and kip320; the names of our packages say nothing."""
    words = {word.lower() for word in WORD.findall(OUR_PACKAGES.sub("", text))}
    return words | {word.rstrip("0123456789") for word in words}


def mentions(source: str, forbidden: frozenset[str]) -> list[str]:
    return [
        f"{number}: says {', '.join(sorted(said))}"
        for number, line in enumerate(source.splitlines(), 1)
        if (said := words_of(line) & forbidden)
    ]


def random_sources(source: str) -> list[str]:
    imported = {
        line
        for line, name in imported_modules(source)
        if any(name == module or name.startswith(f"{module}.") for module in RANDOM_MODULES)
    }
    reached = {
        node.lineno
        for node in nodes(source)
        if isinstance(node, ast.Attribute)
        and ast.unparse(node) in {"np.random", "numpy.random", "os.urandom", "os.getrandom"}
    }
    return [f"{line}: uses a random source" for line in sorted(imported | reached)]


def uses_of_any(source: str) -> list[str]:
    lines = {line for line, name in imported_modules(source) if name == "typing.Any"}
    for node in nodes(source):
        match node:
            case ast.Name(id="Any", lineno=line) | ast.Attribute(attr="Any", lineno=line):
                lines.add(line)
            case _:
                pass
    return [f"{line}: uses Any" for line in sorted(lines)]


# The tree keeps them


def test_every_package_has_its_place_among_the_arrows() -> None:
    strangers = {package_of(path) for path in python_files(*ROOTS)} ^ set(PACKAGES)
    assert not strangers, f"say in pyproject.toml (and ARCHITECTURE.md) what {sorted(strangers)} may import"


@pytest.mark.parametrize("contract", import_graph.contracts().values(), ids=lambda contract: contract.name)
def test_imports_keep_the_contract(contract: Contract) -> None:
    assert import_graph.kept(contract), "make check says which import breaks it"


def test_no_file_imports_in_a_circle() -> None:
    graph = import_graph.graph()
    files = {file: graph.find_modules_directly_imported_by(file) - LANGUAGE.get(file, set()) for file in graph.modules}
    TopologicalSorter(files).prepare()


def test_imports_in_functions_count() -> None:
    late = ("isr_check.native.exploration", "isr_check.native.graph")
    assert import_graph.graph().direct_import_exists(importer=late[0], imported=late[1])


@pytest.mark.explores
def test_nobody_imports_ours_by_name() -> None:
    report(findings(ours_by_name, python_files(*ROOTS)))


def test_a_source_root_is_not_a_package() -> None:
    report([relative(TOP / root) for root in ROOTS if (TOP / root / "__init__.py").exists()])


@pytest.mark.long
def test_nobody_imports_through_a_source_root() -> None:
    report(findings(imports_through_a_root, python_files(*ROOTS, "tests", "bench")))


def test_no_function_is_long() -> None:
    report(findings(long_functions, python_files(*ROOTS, "tests")))


@pytest.mark.parametrize("package", ["isr_lang", "isr_check"])
def test_no_engine_names_a_kafka_concept(package: str) -> None:
    report(findings(lambda source: mentions(source, PROTOCOL_WORDS), package_files(package)))


@pytest.mark.parametrize("package", MODEL)
def test_the_model_names_no_engine(package: str) -> None:
    report(findings(lambda source: mentions(source, ENGINE_WORDS), package_files(package)))


@pytest.mark.long
def test_randomness_comes_from_the_simulator_and_the_sampler_only() -> None:
    files = [path for path in python_files(*ROOTS) if not below(path, RANDOM_ALLOWED)]
    report(findings(random_sources, files))


@pytest.mark.long
def test_any_stays_where_python_cannot_type_what_is_there() -> None:
    report(findings(uses_of_any, [path for path in python_files(*ROOTS) if not below(path, ANY_ALLOWED)]))


def test_every_tool_is_told_the_same_source_roots() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))

    def told(dotted: str) -> tuple[str, ...]:
        value: object = project
        for key in dotted.split("."):
            value = cast("dict[str, object]", value)[key]
        return tuple(cast("list[str]", value))

    places = ["hatch.build.dev-mode-dirs", "mypy.mypy_path"]
    places += ["pyright.extraPaths", "pytest.ini_options.pythonpath", "ruff.src"]
    assert {place: told(f"tool.{place}") for place in places} == dict.fromkeys(places, ROOTS)
    for wheel in ("only-include", "sources"):  # of a wheel, with the data that verbs read
        entries = {entry.split("/")[0] for entry in told(f"tool.hatch.build.targets.wheel.{wheel}")}
        assert entries == {*ROOTS, "docs", "found"}


# The rules can fail


BREAKS = {
    "downwards": ("isr_lang.nodes", "isr_check.engine"),
    "engines": ("isr_check.explorer", "isr_protocol.state"),
    "pages": ("isr_visual.document", "isr_check.engine"),
    "model": ("isr_protocol.by_name", "isr_broker.settings"),
    "actions": ("isr_protocol.elections", "isr_protocol.promises.safety"),
    "promises": ("isr_protocol.promises.liveness", "isr_protocol.replication"),
    "proof": ("isr_protocol.proof.sets", "isr_protocol.elections"),
    "invariant": ("isr_protocol.by_name", "isr_protocol.proof.questions"),
    "committed-log": ("isr_protocol.proof.logs", "isr_protocol.promises.committed_log"),
    "planted": ("isr_protocol.planted.actions", "isr_protocol.by_name"),
    "parts": ("isr_protocol.designs.zookeeper", "isr_protocol.faults"),
    "quorum": ("isr_protocol.designs.quorum", "isr_protocol.membership"),
    "broker": ("isr_sim.simulate", "isr_lang"),
    "refinement": ("isr_replay.abstraction", "isr_protocol.proof.questions"),
    "kills": ("isr_kills.layers", "isr_visual.document"),
    "histories": ("isr_validate", "isr_anomalies"),
    "validate": ("isr_validate", "isr_cluster"),
    "conform": ("isr_conform", "isr_validate"),
    "drivers": ("isr_pipeline.explore", "isr_processes"),
    "experiment": ("isr_experiment", "isr_replay"),
    "audit": ("isr_audit.live", "isr_broker.settings"),
    "kafka": ("isr_sim.simulate", "isr_kafka"),
    "families": ("insync_cli.registry", "kraft_protocol.by_name"),
    "circles": ("isr_check.native.search", "isr_check.native.exploration"),
}
"""For each contract an import that breaks it."""


def test_every_contract_can_be_broken() -> None:
    assert {name: import_graph.kept(c, BREAKS[name]) for name, c in import_graph.contracts().items()} == dict.fromkeys(
        BREAKS, False
    )


@pytest.mark.parametrize(
    ("rule", "planted"),
    [
        (
            ours_by_name,
            "def late() -> None:\n    import importlib\n    importlib.import_module('isr_protocol.designs.history')",
        ),
        (imports_through_a_root, "from spec import isr_model"),
        (imports_through_a_root, "import spec.isr_model"),
        (imports_through_a_root, "import pipeline"),
        (imports_through_a_root, "import insync.insync_cli.exits"),
        (imports_through_a_root, "from insync import insync"),
        (long_functions, "def f() -> None:\n" + "    x = 1\n" * LINES_PER_FUNCTION),
        (
            long_functions,
            "class C:\n    async def f(self) -> None:\n" + "        x = 1\n" * LINES_PER_FUNCTION,
        ),
        (random_sources, "from random import Random"),
        (random_sources, "import numpy as np\nnp.random.default_rng()"),
        (random_sources, "from numpy import random"),
        (uses_of_any, "from typing import Any"),
        (uses_of_any, "import typing\nx: dict[str, typing.Any] = {}"),
    ],
)
def test_a_planted_violation_is_seen(rule: Callable[[str], list[str]], planted: str) -> None:
    assert rule(planted)


@pytest.mark.parametrize(
    "planted",
    [
        "high_watermark = 0",
        "class LeaderState: ...",
        "x = 'the ISR shrinks'",
        "x = 'of two ISRs'",
        "x = 1  # as kip320 does",
        "isr_set = 1",
    ],
)
def test_a_planted_kafka_word_is_seen(planted: str) -> None:
    assert mentions(planted, PROTOCOL_WORDS)


@pytest.mark.parametrize("planted", ["import z3", "x = 1  # TLC wants this", "llvm_hint = 2", "class SparkRow: ..."])
def test_a_planted_engine_name_is_seen(planted: str) -> None:
    assert mentions(planted, ENGINE_WORDS)


def test_the_names_of_our_packages_are_not_kafka_words() -> None:
    assert not mentions("from isr_lang.graph import Node  # isr_check evaluates; tracked, display", PROTOCOL_WORDS)


def test_a_function_as_long_as_allowed_is_not_reported() -> None:
    assert not long_functions("def f() -> None:\n" + "    x = 1\n" * (LINES_PER_FUNCTION - 1))
