"""The coverage of the replay: how much of the model and of the cores it has seen, each as x of y.

- Actions and guards of the model. A guard counts as seen true if a step went on to the next guard, and as seen false if
  it was the first guard that was false.
- Errors that the cores answer, out of those that their sources name outside of comparisons.
- Branches of the cores, counted by coverage.py while they run.

The cores are run by the replay, and by what `coverage_runs` has beyond it.
"""

from __future__ import annotations

import ast
import io
import json
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast

import attrs

import isr_broker
from isr_broker.core import controller as controllers
from isr_broker.core import node as nodes
from isr_broker.core.messages import Error
from isr_check.engine import Limits
from isr_check.native import explore
from isr_lang import Design, Instance, text, walk
from isr_lang.declare import Value
from isr_replay.coverage_runs import SOURCES, Runs
from isr_replay.replay import ReplayResult, replay

CORES: Final = (
    *("leader", "follower", "watermark", "replica", "node", "replica_state"),
    *("controller", "controller_state", "topic_changes", "elections", "producers", "log_view"),
)
"""The modules of the cores that decide something which the model has: no records are deleted, nothing is reassigned."""

BOUNDS: Final[tuple[Mapping[str, Value], ...]] = (
    {"replicas": 2, "crashes": 1},
    {"replicas": 2, "crashes": 1, "shutdowns": 1},
    {"replicas": 2, "min_insync": 1, "epochs": 2, "isr_changes": 4, "crashes": 1, "sessions_lost": 1},
    {"replicas": 2, "crashes": 1, "lossy_crashes": 1},
    {"replicas": 2, "log": 2, "records": 2, "consumers": 1, "follower_reads": True},
    {"replicas": 2, "min_insync": 1, "epochs": 2, "isr_changes": 3, "unclean": True, "crashes": 0, "lossy_crashes": 1},
    {"replicas": 3, "isr_changes": 1},
)
"""The bounds that are replayed for docs/replay.md."""

BEGIN: Final = "<!-- coverage: written by insync coverage -->"
END: Final = "<!-- end of coverage -->"


class NoCounter(Exception):
    """The package coverage.py is not installed."""


@attrs.frozen(kw_only=True)
class Part:
    """A count of one kind, `covered` of `of`, and what is missing."""

    what: str
    covered: int
    of: int
    missing: tuple[str, ...] = ()
    passing: bool = False
    """A subtotal after some of the sources; the part with all sources says what is missing."""


@attrs.frozen(kw_only=True)
class CoverageReport:
    """What several replays of a design and other runs of its cores have seen together."""

    design: str
    replays: tuple[ReplayResult, ...]
    parts: tuple[Part, ...]


def measure_coverage(
    design: Design,
    bounds: Sequence[Mapping[str, Value]] = BOUNDS,
    progress: Callable[[int, int], None] = lambda explored, known: None,
    more: Mapping[str, Runs] = SOURCES,
) -> CoverageReport:
    """Replay a design within each of these bounds, then make the runs in `more`; NoCounter without coverage.py."""
    replays: list[ReplayResult] = []
    errors: list[Part] = []
    branches: list[Part] = []
    with count_branches() as branch_coverage, watch_answers() as deliver_fetch_answer:
        for constants in bounds:
            replays.append(replay(constants, design=design, progress=progress))
        errors.append(_errors(deliver_fetch_answer))
        branches.append(branch_coverage())
        for runs in more.values():
            runs(design.name)
            errors.append(_errors(deliver_fetch_answer))
            branches.append(branch_coverage())
    cores = [_cumulative(errors, ("replay", *more)), _cumulative(branches, ("replay", *more))]
    parts = [_actions(design, replays), *_guards(design, bounds), *cores[0], *cores[1]]
    return CoverageReport(design=design.name, replays=tuple(replays), parts=tuple(parts))


def _cumulative(parts: Sequence[Part], sources: Sequence[str]) -> list[Part]:
    """The total, after a subtotal for each source; only the total says what is missing."""
    *before, last = parts
    ends = [f"{part.what}: {', '.join(sources[: n + 1])}" for n, part in enumerate(before)]
    return [*(attrs.evolve(p, what=end, missing=(), passing=True) for p, end in zip(before, ends, strict=True)), last]


# The model


def _actions(design: Design, replays: Sequence[ReplayResult]) -> Part:
    taken = {name for done in replays for name, (count, _) in done.edges_by_action.items() if count}
    names = [action.name for action in design.actions]
    return Part(
        what="actions", covered=len(taken), of=len(names), missing=tuple(name for name in names if name not in taken)
    )


def guards_of(design: Design) -> dict[tuple[str, int], str]:
    """The text of every guard of a design, by action and index, without guards that only read settings."""
    return {
        (action.name, i): text(guard.condition)
        for action in design.actions
        for i, guard in enumerate(action.guards)
        if any(node.op in ("variable", "call") for node in walk(guard.condition))
    }


def _guards(design: Design, bounds: Sequence[Mapping[str, Value]]) -> Iterator[Part]:
    """Guards seen true and seen false in all states within these bounds."""
    guard_texts = guards_of(design)
    true, false = set[tuple[str, int]](), set[tuple[str, int]]()
    for constants in bounds:
        found = explore(Instance(design, constants), ("type-ok",), Limits())
        for guard in found.guards:
            key = (guard.action, guard.index)
            true |= {key} if guard.passes else set()
            false |= {key} if guard.refusals else set()
    for what, seen in (("guard conjuncts seen true", true), ("guard conjuncts seen false", false)):
        missing = tuple(f"{name}: {guard_texts[name, i]}" for name, i in guard_texts if (name, i) not in seen)
        yield Part(what=what, covered=len(seen & guard_texts.keys()), of=len(guard_texts), missing=missing)


# The cores


def _source(module: str) -> Path:
    assert isr_broker.__file__ is not None
    return Path(isr_broker.__file__).parent / "core" / f"{module}.py"


def answerable_errors() -> set[str]:
    """The errors that the cores may answer: those that their sources name outside of comparisons."""
    error_names: set[str] = set()
    for module in CORES:
        tree = ast.parse(_source(module).read_text(encoding="utf-8"))
        compared = {id(part) for node in ast.walk(tree) if isinstance(node, ast.Compare) for part in ast.walk(node)}
        for node in ast.walk(tree):
            named = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Error"
            if isinstance(node, ast.Attribute) and named and id(node) not in compared:
                error_names.add(node.attr)
    return error_names & {error.name for error in Error}


def _errors(deliver_fetch_answer: set[Error]) -> Part:
    possible = answerable_errors()
    names = {error.name for error in deliver_fetch_answer} & possible
    return Part(
        what="error codes answered", covered=len(names), of=len(possible), missing=tuple(sorted(possible - names))
    )


@contextmanager
def watch_answers() -> Generator[set[Error]]:
    """The errors that the cores answer inside the context, NONE among them."""
    errors: set[Error] = set()
    plain = {nodes: nodes.handle, controllers: controllers.handle}

    def watching(handle: Callable[..., object]) -> Callable[..., object]:
        def watched_handle(*arguments: object) -> object:
            step = handle(*arguments)
            for effect in cast("Sequence[object]", getattr(step, "effects", ())):
                for said in (effect, getattr(effect, "message", None), getattr(effect, "response", None)):
                    error = getattr(said, "error", None)
                    if isinstance(error, Error):
                        errors.add(error)
            return step

        return watched_handle

    try:
        for module, handle in plain.items():
            setattr(module, "handle", watching(cast("Callable[..., object]", handle)))  # noqa: B010
        yield errors
    finally:
        for module, handle in plain.items():
            setattr(module, "handle", handle)  # noqa: B010


@contextmanager
def count_branches() -> Generator[Callable[[], Part]]:
    """Count the branches of the cores that are taken inside the context; NoCounter without coverage.py."""
    try:
        from coverage import Coverage
    except ImportError:
        raise NoCounter("coverage.py is not installed: pip install coverage") from None
    files = [str(_source(module)) for module in CORES]
    counter = Coverage(data_file=None, branch=True, include=files, config_file=False)
    counter.start()

    def branch_coverage() -> Part:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "coverage.json"
            with _quiet():
                counter.json_report(morfs=files, outfile=str(report))
            told = cast("dict[str, dict[str, dict[str, dict[str, dict[str, int]]]]]", json.loads(report.read_text()))
        branch_counts = {
            (Path(name).stem, function): (summary["num_branches"], summary["covered_branches"])
            for name, entry in told["files"].items()
            for function, summary in _functions(entry)
        }
        return Part(
            what="branches of the cores",
            covered=sum(seen for _, seen in branch_counts.values()),
            of=sum(of for of, _ in branch_counts.values()),
            missing=tuple(
                f"{module}.{function}: {of - seen}"
                for (module, function), (of, seen) in sorted(branch_counts.items())
                if seen < of
            ),
        )

    try:
        yield branch_coverage
    finally:
        counter.stop()


def _functions(entry: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, Mapping[str, int]]]:
    """The functions of a file with their counts; code outside of functions is named `module`."""
    for function, told in entry["functions"].items():
        yield function or "module", cast("Mapping[str, Mapping[str, int]]", told)["summary"]


@contextmanager
def _quiet() -> Generator[None]:
    from contextlib import redirect_stdout

    with redirect_stdout(io.StringIO()):
        yield


# As a page


def tables(covered: CoverageReport) -> str:
    """The report as Markdown."""
    rows = ["| bounds | states | edges | explained | action pairs |", "|---|---|---|---|---|"]
    for done in covered.replays:
        pairs = f"{done.pairs[0]:,} of {done.pairs[1]:,}"
        edges = f"{done.replayed:,} of {done.edges:,}"
        rows.append(
            f"| {bounds_text(done)} | {done.states:,} | {edges} | {sum(done.known_differences.values()):,} | {pairs} |"
        )
    rows += ["", "| over all of these | seen | of | not seen |", "|---|---|---|---|"]
    for part in covered.parts:
        missing = "" if part.passing else "; ".join(f"`{m}`" for m in part.missing) or "-"
        rows.append(f"| {part.what} | {part.covered:,} | {part.of:,} | {missing.replace('|', '&#124;')} |")
    return "\n".join(rows)


def bounds_text(result: ReplayResult) -> str:
    """The bounds of a replay as options, without those that have their default."""
    told = {name: value for name, value in result.constants.items() if name in _DEFAULTS and value != _DEFAULTS[name]}
    words = (f"--{name.replace('_', '-')} {'on' if value is True else value}" for name, value in told.items())
    return f"`{' '.join(words)}`"


_DEFAULTS: Final[dict[str, Value]] = {
    **{"replicas": 0, "log": 1, "records": 1, "epochs": 1, "crashes": 0, "lossy_crashes": 0, "shutdowns": 0},
    **{"isr_changes": 2, "sessions_lost": 0, "consumers": 0, "min_insync": 2, "unclean": False},
    **{"follower_reads": False},
}


def insert_tables(page: str, covered: CoverageReport) -> str:
    """A page with the tables written between its marks; ValueError if it has no marks."""
    before, found, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"the page has no {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n\n{tables(covered)}\n\n{END}{after}"
