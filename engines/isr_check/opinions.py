"""What solvers say of queries in SMT-LIB: each query in a process of its own, within a time limit.

This module reads nothing but the text of a query, so it does not depend on the code that wrote it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module, metadata
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Protocol, cast

import attrs

from isr_check.certify import Query

Options = tuple[tuple[str, bool | int | float | str], ...]

GRACE = 5.0
"""Seconds that a solver may exceed its limit before its process is killed."""
MEGABYTES = 3000
"""Megabytes of memory for one query."""

SOLVERS = {"z3": ("z3", "z3-solver"), "cvc5": ("cvc5", "cvc5")}
"""Solver -> its Python module, and the distribution on PyPI that has it."""

WAYS_OF_CVC5: tuple[tuple[float, Options], ...] = (
    (0.4, ()),
    (0.2, (("full-saturate-quant", "true"),)),
    (0.1, (("mbqi", "true"),)),
    (0.1, (("enum-inst-interleave", "true"), ("full-saturate-quant", "true"))),
    (0.2, (("full-saturate-quant", "true"), ("user-pat", "ignore"))),
)
"""Options of cvc5 that treat quantifiers differently, each with its share of the time: instances at terms that match a
pattern; at all other terms too; where a model needs them; at other terms by turns with those that match; and at all
terms, whatever the patterns say."""


@attrs.frozen
class Opinion:
    """The answer of one solver: 'unsat' confirms the proof, 'sat' is a counterexample, 'unknown' has a `reason`."""

    query: str
    answer: str
    seconds: float
    reason: str = ""


class Z3Solver(Protocol):
    """The part of z3's class Solver that is used here."""

    def set(self, name: str, value: object, /) -> None: ...
    def from_string(self, text: str, /) -> None: ...
    def check(self) -> object: ...
    def reason_unknown(self) -> str: ...


class Z3(Protocol):
    """The part of the module z3 that is used here."""

    def SimpleSolver(self) -> Z3Solver: ...
    def Solver(self) -> Z3Solver: ...


class Cvc5Solver(Protocol):
    """The part of cvc5's class Solver that is used here."""

    def setOption(self, name: str, value: str, /) -> None: ...


class Command(Protocol):
    """A command that was read."""

    def isNull(self) -> bool: ...
    def invoke(self, solver: Cvc5Solver, symbols: object, /) -> str: ...


class Parser(Protocol):
    """A reader of commands."""

    def setStringInput(self, language: object, text: str, name: str, /) -> None: ...
    def nextCommand(self) -> Command: ...
    def getSymbolManager(self) -> object: ...


class Language(Protocol):
    """The languages that cvc5 reads."""

    SMT_LIB_2_6: object


class Cvc5(Protocol):
    """The part of the module cvc5 that is used here."""

    InputLanguage: Language

    def TermManager(self) -> object: ...
    def Solver(self, terms: object, /) -> Cvc5Solver: ...
    def InputParser(self, solver: Cvc5Solver, /) -> Parser: ...


def missing(solver: str) -> str | None:
    """A sentence that says how to get a solver that is not installed."""
    module, distribution = SOLVERS[solver]
    if find_spec(module) is not None:
        return None
    return f"{solver} is not installed; pip install {distribution}"


def version(solver: str) -> str:
    return metadata.version(SOLVERS[solver][1])


def ask_z3(query: Query, seconds: float) -> tuple[str, str]:
    """Ask z3 with the query's own options, then with z3's defaults; each question has the whole limit.

    Only the defaults can find a counterexample. With the query's options z3 does not check a model against
    quantifiers, so its 'sat' is a candidate, and counts as 'unknown'.
    """
    z3 = cast("Z3", import_module("z3"))
    reason = ""
    for way in dict.fromkeys((query.way, ())):
        solver = z3.SimpleSolver() if way else z3.Solver()
        solver.set("timeout", max(1, int(seconds * 1000)))
        solver.set("max_memory", MEGABYTES)
        for name, value in way:
            solver.set(name, value)
        solver.from_string(query.text)
        said = str(solver.check())
        if said == "unsat" or (said == "sat" and not way):
            return said, ""
        reason = solver.reason_unknown() if said == "unknown" else "only a candidate was found"
    return "unknown", reason


def contradictory(query: Query, seconds: float) -> bool:
    """Whether z3 refutes the query within the time."""
    return next(opinions([query], "z3", seconds, 1)).answer == "unsat"


def ask_cvc5(query: Query, seconds: float) -> tuple[str, str]:
    """Ask cvc5 with each of its options, one after the other, until it answers."""
    reason = ""
    for share, way in WAYS_OF_CVC5:
        said = cvc5_once(query.text, seconds * share, way)
        if said in ("sat", "unsat"):
            return said, ""
        reason = said
    return "unknown", reason


def cvc5_once(text: str, seconds: float, way: Options) -> str:
    """The answer of cvc5 with these options."""
    cvc5 = cast("Cvc5", import_module("cvc5"))
    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("tlimit-per", str(max(1, int(seconds * 1000))))
    for name, value in way:
        solver.setOption(name, str(value))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "query")
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said = command.invoke(solver, parser.getSymbolManager()).strip() or said
    return said


ASK: dict[str, Callable[[Query, float], tuple[str, str]]] = {"z3": ask_z3, "cvc5": ask_cvc5}


def opinions(queries: Sequence[Query], solver: str, seconds: float, workers: int) -> Iterator[Opinion]:
    """A solver's opinion on every query, in the order of its answers; 'unknown' if its process hangs or dies."""
    import_module(SOLVERS[solver][0])
    context = get_context("fork")
    waiting = list(reversed(queries))
    running: dict[Connection, tuple[ForkProcess, Query, float]] = {}
    limit = GRACE + seconds * (2 if solver == "z3" else 1)
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                ours, theirs = context.Pipe()
                query = waiting.pop()
                process = context.Process(target=_answer, args=(theirs, solver, query, seconds), daemon=True)
                process.start()
                theirs.close()
                running[ours] = process, query, time.monotonic()
            ready = set(wait(list(running), timeout=1.0))
            for connection, (process, query, began) in list(running.items()):
                taken = time.monotonic() - began
                if connection in ready or taken > limit:
                    del running[connection]
                    yield _opinion(connection, query, taken, connection in ready)
                    process.kill()
                    process.join()
                    connection.close()
    finally:
        for process, _, _ in running.values():
            process.kill()


def _opinion(connection: Connection, query: Query, seconds: float, ready: bool) -> Opinion:
    if not ready:
        return Opinion(query.name, "unknown", seconds, "it did not keep to its time limit")
    try:
        said, reason = cast("tuple[str, str]", connection.recv())
    except EOFError:
        said, reason = "unknown", "its process ended (memory?)"
    return Opinion(query.name, said, seconds, reason)


def _answer(theirs: Connection, solver: str, query: Query, seconds: float) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (2 * MEGABYTES << 20, resource.RLIM_INFINITY))
    try:
        theirs.send(ASK[solver](query, seconds))
    except Exception as problem:  # a solver's complaint about the text, or about memory
        theirs.send(("unknown", " ".join(str(problem).split())[:200]))
