"""The shape of this repository, as tests: which way imports point, how long things are, and what is absent.

Every rule is a function from one source text to its findings. One test applies it to the whole tree and
another plants a violation, so that a rule which stopped seeing anything is noticed.
"""

import ast
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import cast

import pytest

TOP = Path(__file__).resolve().parent.parent
ROOTS = ("spec", "impl", "refinement", "counterexamples", "pipeline", "insync")

IMPORTS_DIRECTLY: dict[str, set[str]] = {
    "isr_lang": set(),
    # the model, one module per part of the protocol, in reading order
    "isr_state": {"isr_lang"},
    "isr_replication": {"isr_state"},
    "isr_membership": {"isr_replication"},
    "isr_elections": {"isr_membership"},
    "isr_faults": {"isr_elections"},
    "isr_properties": {"isr_state"},
    "isr_liveness": {"isr_properties"},
    "isr_committed_log": {"isr_state"},
    "isr_invariant_logs": {"isr_properties", "isr_replication"},
    "isr_invariant_sets": {"isr_invariant_logs", "isr_membership"},
    "isr_invariant": {"isr_invariant_sets"},
    "isr_proof": {"isr_invariant", "isr_committed_log"},
    "isr_model": {"isr_faults", "isr_liveness", "isr_committed_log"},
    "isr_zookeeper": {"isr_membership"},
    "isr_quorum": {"isr_replication"},
    "isr_history": {"isr_model", "isr_zookeeper", "isr_quorum"},
    "isr_bugs": {"isr_history"},
    "isr_designs": {"isr_bugs"},
    "isr_planted_actions": {"isr_bugs", "isr_model", "isr_zookeeper"},
    "isr_planted": {"isr_bugs", "isr_planted_actions"},
    "isr_check": {"isr_lang"},
    "isr_pipeline": {"isr_check", "isr_trace", "isr_conform", "isr_validate", "isr_anomalies"},
    "isr_trace": {"isr_lang"},
    "isr_visual": {"isr_trace"},
    "isr_report": {"isr_visual", "isr_check"},
    "isr_broker": set(),
    "isr_sim": {"isr_broker"},
    "isr_cluster": {"isr_broker"},
    "isr_kafka": set(),
    "isr_found": {"isr_kafka"},
    "isr_replay": {"isr_designs", "isr_check", "isr_trace", "isr_broker", "isr_sim", "isr_cluster"},
    "isr_validate": {"isr_designs", "isr_check", "isr_trace", "isr_broker", "isr_sim"},
    "isr_conform": {"isr_replay"},
    "isr_processes": {"isr_conform"},
    "isr_anomalies": set(),
    "isr_kills": {"isr_processes", "isr_validate", "isr_anomalies", "isr_planted"},
    "isr_experiment": {"isr_designs", "isr_check", "isr_broker", "isr_cluster", "isr_validate", "isr_anomalies"},
    "insync_cli": {"isr_designs", "isr_proof", "isr_check", "isr_pipeline", "isr_trace", "isr_visual", "isr_report"}
    | {"isr_cluster", "isr_found", "isr_kills", "isr_anomalies", "isr_experiment"},
}
"""The arrows of ARCHITECTURE.md. A package may import what it can reach by them, and itself."""

MODEL = sorted(path.stem for path in (TOP / "spec").glob("isr_*.py"))

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
    "impl/isr_sim",
    "spec/isr_check/sample",
    "counterexamples/isr_report/simulated",
    "refinement/isr_conform/edge_cover",
    "impl/isr_experiment/nemesis",
)
"""The simulator's scheduler, the explorer's sampler, the report's third way to a probability, and the walks of
`insync conform`; all take a seed."""

ANY_ALLOWED = (
    "spec/isr_lang/nodes",  # what a node carries beside its arguments depends on its operator
    "spec/isr_lang/state",  # var() has whatever type the annotation on its left says
    "spec/isr_check/reference",  # functions generated as text, and the values that they compute
    "spec/isr_check/smt/step_solver",  # z3 has no annotations
    "spec/isr_check/smt/terms/logic",  # z3 has no annotations
    "spec/isr_check/smt/solver",  # z3 has no annotations
    "spec/isr_check/smt/equal_goals",  # z3 has no annotations
    "spec/isr_check/smt/strategy",  # z3 has no annotations
)
"""Where Python cannot type what is there, each place with its reason."""


# The tree


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (TOP / folder).rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(TOP).as_posix()


def package_of(path: Path) -> str:
    """The import name a file belongs to: spec/isr_lang/x.py and spec/isr_lang.py are both isr_lang."""
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


def imported_modules(source: str) -> Iterator[tuple[int, str]]:
    """Every absolute import as (line, dotted name), wherever it stands, also `import_module("literal")`."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in names)
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name
            case _:
                pass


def reachable(package: str) -> set[str]:
    """What a package may import, itself included: the arrows followed to their ends."""
    return {package}.union(*(reachable(imported) for imported in IMPORTS_DIRECTLY[package]))


def wrong_way_imports(source: str, package: str) -> list[str]:
    ours = [(line, name.split(".")[0]) for line, name in imported_modules(source)]
    return [
        f"{line}: {package} must not import {name}"
        for line, name in sorted(set(ours))
        if name in IMPORTS_DIRECTLY and name not in reachable(package)
    ]


def imports_through_a_root(source: str) -> list[str]:
    return [
        f"{line}: import {name.split('.', 1)[1]} directly, {name.split('.')[0]}/ is not a package"
        for line, name in imported_modules(source)
        if name.split(".")[0] in ROOTS and "." in name
    ] + [f"{line}: {name}/ is not a package" for line, name in imported_modules(source) if name in ROOTS]


def long_functions(source: str) -> list[str]:
    functions = (
        (node, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return [
        f"{node.lineno}: {node.name} has {lines} lines, above {LINES_PER_FUNCTION}"
        for node, lines in functions
        if lines > LINES_PER_FUNCTION
    ]


OUR_PACKAGES = re.compile(rf"\b(?:{'|'.join(IMPORTS_DIRECTLY)})\b")
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
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and ast.unparse(node) in {"np.random", "numpy.random", "os.urandom", "os.getrandom"}
    }
    return [f"{line}: uses a random source" for line in sorted(imported | reached)]


def uses_of_any(source: str) -> list[str]:
    lines = {line for line, name in imported_modules(source) if name == "typing.Any"}
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id="Any", lineno=line) | ast.Attribute(attr="Any", lineno=line):
                lines.add(line)
            case _:
                pass
    return [f"{line}: uses Any" for line in sorted(lines)]


# The tree keeps them


def test_every_package_has_its_place_among_the_arrows() -> None:
    strangers = {package_of(path) for path in python_files(*ROOTS)} - set(IMPORTS_DIRECTLY)
    assert not strangers, f"say in IMPORTS_DIRECTLY (and ARCHITECTURE.md) what {sorted(strangers)} may import"


@pytest.mark.parametrize("package", sorted(IMPORTS_DIRECTLY))
def test_imports_point_one_way(package: str) -> None:
    report(findings(lambda source: wrong_way_imports(source, package), package_files(package)))


def test_nothing_imports_the_command_line() -> None:
    assert all("insync_cli" not in reachable(package) for package in IMPORTS_DIRECTLY if package != "insync_cli")


def test_the_broker_imports_nothing_of_ours() -> None:
    assert reachable("isr_broker") == {"isr_broker"}


def test_a_source_root_is_not_a_package() -> None:
    report([relative(TOP / root) for root in ROOTS if (TOP / root / "__init__.py").exists()])


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


def test_randomness_comes_from_the_simulator_and_the_sampler_only() -> None:
    files = [path for path in python_files(*ROOTS) if not below(path, RANDOM_ALLOWED)]
    report(findings(random_sources, files))


def test_any_stays_where_python_cannot_type_what_is_there() -> None:
    report(findings(uses_of_any, [path for path in python_files(*ROOTS) if not below(path, ANY_ALLOWED)]))


def test_every_tool_is_told_the_same_source_roots() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))

    def told(dotted: str) -> tuple[str, ...]:
        value: object = project
        for key in dotted.split("."):
            value = cast("dict[str, object]", value)[key]
        return tuple(cast("list[str]", value))

    places = ["hatch.build.dev-mode-dirs", "hatch.build.targets.wheel.sources", "mypy.mypy_path"]
    places += ["pyright.extraPaths", "pytest.ini_options.pythonpath", "ruff.src"]
    assert {place: told(f"tool.{place}") for place in places} == dict.fromkeys(places, ROOTS)
    assert {entry.split("/")[0] for entry in told("tool.hatch.build.targets.wheel.only-include")} == set(ROOTS)


# The rules can fail


@pytest.mark.parametrize(
    ("package", "planted"),
    [
        ("isr_lang", "import isr_check"),
        ("isr_check", "def late() -> None:\n    from isr_model import State"),
        ("isr_check", "import importlib\nimportlib.import_module('isr_history')"),
        ("isr_model", "from isr_history import DESIGNS"),
        ("isr_trace", "import isr_check.explore as explore"),
        ("isr_broker", "import isr_lang"),
        ("isr_validate", "from insync_cli.main import main"),
    ],
)
def test_a_planted_wrong_way_import_is_seen(package: str, planted: str) -> None:
    assert wrong_way_imports(planted, package)


def test_a_right_way_import_is_allowed_through_the_arrows_between() -> None:
    assert not wrong_way_imports("import isr_lang\nfrom . import x\nimport attrs\nimport isr_model", "isr_history")


@pytest.mark.parametrize(
    ("rule", "planted"),
    [
        (imports_through_a_root, "from spec import isr_model"),
        (imports_through_a_root, "import spec.isr_model"),
        (imports_through_a_root, "import insync"),
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
