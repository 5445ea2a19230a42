"""How much was seen, each as x of y: of the model, of what the cores can answer, of the cores' own branches.

Of the model by the replay; of the cores by the replay, and by what runs them beyond it (`runs`).

A guard counts as seen true where it let a step through to the next guard, and false where it was the first that said
no. Errors that the cores may answer are those that their sources name outside of comparisons. Branches are counted by
coverage.py while the cores run.
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
from isr_replay.replay import Replayed, replay

CORES: Final = (
    *("leader", "leader_time", "consumers", "follower", "watermark", "replica", "node", "replica_state"),
    *("controller", "controller_state", "elections", "producers", "leader_epochs", "log_view"),
)
"""The modules of the cores: what decides, without sockets, files and the shapes of messages."""

BOUNDS: Final[tuple[Mapping[str, Value], ...]] = (
    {"replicas": 2, "crashes": 1},
    {"replicas": 2, "crashes": 1, "shutdowns": 1},
    {"replicas": 2, "min_insync": 1, "epochs": 2, "isr_changes": 4, "crashes": 1, "sessions_lost": 1},
    {"replicas": 2, "crashes": 1, "lossy_crashes": 1},
    {"replicas": 2, "log": 2, "records": 2, "consumers": 1, "follower_reads": True},
    {"replicas": 2, "min_insync": 1, "epochs": 2, "isr_changes": 3, "unclean": True, "crashes": 0, "lossy_crashes": 1},
    {"replicas": 3, "isr_changes": 1},
)
"""What is replayed for docs/conformance.md."""

BEGIN: Final = "<!-- coverage: written by insync coverage -->"
END: Final = "<!-- end of coverage -->"


class NoCounter(Exception):
    """coverage.py is not there."""


@attrs.frozen(kw_only=True)
class Part:
    """x of y of one kind, and what is missing."""

    what: str
    seen: int
    of: int
    missing: tuple[str, ...] = ()
    passing: bool = False
    """Another part has more sources; what is missing is told there."""


@attrs.frozen(kw_only=True)
class Covered:
    """What several replays of a design, and whatever else ran its cores, have seen together."""

    design: str
    replays: tuple[Replayed, ...]
    parts: tuple[Part, ...]


def coverage_of(
    design: Design,
    bounds: Sequence[Mapping[str, Value]] = BOUNDS,
    progress: Callable[[int, int], None] = lambda explored, known: None,
    more: Mapping[str, Runs] = SOURCES,
) -> Covered:
    """Replay a design within each of these bounds, then run `more`, and count; NoCounter without coverage.py."""
    replays: list[Replayed] = []
    errors: list[Part] = []
    branches: list[Part] = []
    with branches_counted() as counted, answers_watched() as answered:
        for constants in bounds:
            replays.append(replay(constants, design=design, progress=progress))
        errors.append(_errors(answered))
        branches.append(counted())
        for runs in more.values():
            runs(design.name)
            errors.append(_errors(answered))
            branches.append(counted())
    cores = [_by_and_by(errors, ("replay", *more)), _by_and_by(branches, ("replay", *more))]
    parts = [_actions(design, replays), *_guards(design, bounds), *cores[0], *cores[1]]
    return Covered(design=design.name, replays=tuple(replays), parts=tuple(parts))


def _by_and_by(parts: Sequence[Part], sources: Sequence[str]) -> list[Part]:
    """The sum, and before it what was seen when each source had ended; only the sum tells what is missing."""
    *before, last = parts
    ends = [f"{part.what}: {', '.join(sources[: n + 1])}" for n, part in enumerate(before)]
    return [*(attrs.evolve(p, what=end, missing=(), passing=True) for p, end in zip(before, ends, strict=True)), last]


# The model


def _actions(design: Design, replays: Sequence[Replayed]) -> Part:
    taken = {name for done in replays for name, (count, _) in done.taken.items() if count}
    names = [action.name for action in design.actions]
    return Part(
        what="actions", seen=len(taken), of=len(names), missing=tuple(name for name in names if name not in taken)
    )


def guards_of(design: Design) -> dict[tuple[str, int], str]:
    """Every guard of a design as it is written, by action and place, without those that only ask for a setting."""
    return {
        (action.name, i): text(guard.condition)
        for action in design.actions
        for i, guard in enumerate(action.guards)
        if any(node.op in ("variable", "call") for node in walk(guard.condition))
    }


def _guards(design: Design, bounds: Sequence[Mapping[str, Value]]) -> Iterator[Part]:
    """Guards seen true and seen false, in all states within these bounds; the cores are compared in all of them."""
    written = guards_of(design)
    true, false = set[tuple[str, int]](), set[tuple[str, int]]()
    for constants in bounds:
        found = explore(Instance(design, constants), ("type-ok",), Limits())
        for guard in found.guards:
            key = (guard.action, guard.index)
            true |= {key} if guard.passed else set()
            false |= {key} if guard.refused else set()
    for what, seen in (("guard conjuncts seen true", true), ("guard conjuncts seen false", false)):
        missing = tuple(f"{name}: {written[name, i]}" for name, i in written if (name, i) not in seen)
        yield Part(what=what, seen=len(seen & written.keys()), of=len(written), missing=missing)


# The cores


def _source(module: str) -> Path:
    assert isr_broker.__file__ is not None
    return Path(isr_broker.__file__).parent / "core" / f"{module}.py"


def answerable() -> set[str]:
    """The errors that the cores may answer: those that their sources name, but to compare with."""
    found: set[str] = set()
    for module in CORES:
        tree = ast.parse(_source(module).read_text(encoding="utf-8"))
        compared = {id(part) for node in ast.walk(tree) if isinstance(node, ast.Compare) for part in ast.walk(node)}
        for node in ast.walk(tree):
            named = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Error"
            if isinstance(node, ast.Attribute) and named and id(node) not in compared:
                found.add(node.attr)
    return found & {error.name for error in Error}


def _errors(answered: set[Error]) -> Part:
    possible = answerable()
    names = {error.name for error in answered} & possible
    return Part(what="error codes answered", seen=len(names), of=len(possible), missing=tuple(sorted(possible - names)))


@contextmanager
def answers_watched() -> Generator[set[Error]]:
    """The errors, NONE among them, that the cores answer meanwhile."""
    seen: set[Error] = set()
    plain = {nodes: nodes.handle, controllers: controllers.handle}

    def watching(handle: Callable[..., object]) -> Callable[..., object]:
        def watched(*given: object) -> object:
            step = handle(*given)
            for effect in cast("Sequence[object]", getattr(step, "effects", ())):
                for said in (effect, getattr(effect, "message", None), getattr(effect, "response", None)):
                    error = getattr(said, "error", None)
                    if isinstance(error, Error):
                        seen.add(error)
            return step

        return watched

    try:
        for module, handle in plain.items():
            setattr(module, "handle", watching(cast("Callable[..., object]", handle)))  # noqa: B010
        yield seen
    finally:
        for module, handle in plain.items():
            setattr(module, "handle", handle)  # noqa: B010


@contextmanager
def branches_counted() -> Generator[Callable[[], Part]]:
    """Count the branches of the cores that are taken meanwhile; the sum can be asked for afterwards."""
    try:
        from coverage import Coverage
    except ImportError:
        raise NoCounter("coverage.py is not installed: pip install coverage") from None
    files = [str(_source(module)) for module in CORES]
    counter = Coverage(data_file=None, branch=True, include=files, config_file=False)
    counter.start()

    def counted() -> Part:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "coverage.json"
            with _quiet():
                counter.json_report(morfs=files, outfile=str(report))
            told = cast("dict[str, dict[str, dict[str, dict[str, dict[str, int]]]]]", json.loads(report.read_text()))
        found = {
            (Path(name).stem, function): (summary["num_branches"], summary["covered_branches"])
            for name, entry in told["files"].items()
            for function, summary in _functions(entry)
        }
        return Part(
            what="branches of the cores",
            seen=sum(seen for _, seen in found.values()),
            of=sum(of for of, _ in found.values()),
            missing=tuple(
                f"{module}.{function}: {of - seen}"
                for (module, function), (of, seen) in sorted(found.items())
                if seen < of
            ),
        )

    try:
        yield counted
    finally:
        counter.stop()


def _functions(entry: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, Mapping[str, int]]]:
    """The functions of a file, each with its sums; what is outside of all of them has no name."""
    for function, told in entry["functions"].items():
        yield function or "module", cast("Mapping[str, Mapping[str, int]]", told)["summary"]


@contextmanager
def _quiet() -> Generator[None]:
    from contextlib import redirect_stdout

    with redirect_stdout(io.StringIO()):
        yield


# As a page


def tables(covered: Covered) -> str:
    """The report as Markdown."""
    rows = ["| bounds | states | edges | explained | action pairs |", "|---|---|---|---|---|"]
    for done in covered.replays:
        pairs = f"{done.pairs[0]:,} of {done.pairs[1]:,}"
        edges = f"{done.replayed:,} of {done.edges:,}"
        rows.append(
            f"| {bounds_shown(done)} | {done.states:,} | {edges} | {sum(done.explained.values()):,} | {pairs} |"
        )
    rows += ["", "| over all of these | seen | of | not seen |", "|---|---|---|---|"]
    for part in covered.parts:
        missing = "" if part.passing else "; ".join(f"`{m}`" for m in part.missing) or "-"
        rows.append(f"| {part.what} | {part.seen:,} | {part.of:,} | {missing.replace('|', '&#124;')} |")
    return "\n".join(rows)


def bounds_shown(done: Replayed) -> str:
    """The constants that tell these bounds from others, as options."""
    told = {name: value for name, value in done.constants.items() if name in _TOLD and value != _TOLD[name]}
    words = (f"--{name.replace('_', '-')} {'on' if value is True else value}" for name, value in told.items())
    return f"`{' '.join(words)}`"


_TOLD: Final[dict[str, Value]] = {
    **{"replicas": 0, "log": 1, "records": 1, "epochs": 1, "crashes": 0, "lossy_crashes": 0, "shutdowns": 0},
    **{"isr_changes": 2, "sessions_lost": 0, "consumers": 0, "min_insync": 2, "unclean": False},
    **{"follower_reads": False},
}


def written_into(page: str, covered: Covered) -> str:
    """A page with the report between its marks; ValueError if it has no marks."""
    before, found, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"the page has no {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n\n{tables(covered)}\n\n{END}{after}"
