"""Deciding obligations, several at a time, each within a time limit."""

from __future__ import annotations

import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess

import attrs

from isr_check.engine import Unsound
from isr_check.smt.cores import Learnt
from isr_check.smt.hypotheses import Guide
from isr_check.smt.induction import Induction, Obligation, Query
from isr_check.smt.solver import Answer, ask
from isr_check.smt.terms.logic import at_most, conjuncts, z3
from isr_check.smt.terms.solver_values import Reader, TooLarge
from isr_lang import Value as Setting

GRACE = 10.0
"""Seconds of processor time that a worker may exceed its limit before the system ends it."""
QUICK = 0.7
"""Seconds that the `first` way gets before small bounds are tried; it gets its full time after them."""
LONGEST_TOGETHER = 10.0
"""Seconds for the question whether the conjuncts contradict each other; where they do not, it takes them all."""
TOGETHER = -1
"""The number of the question whether the conjuncts contradict each other, among those of the obligations."""
ATTEMPTS = 60
"""The most questions, each with the full time limit, that the `first` way may ask about one query."""


@attrs.frozen
class Proved:
    """The obligation holds; `core` has the hypotheses that the solver used, if they were asked for.

    `learnt` are cores that were not known before, if `first` tells them.
    """

    seconds: float
    core: tuple[str, ...] = ()
    learnt: tuple[Learnt, ...] = ()


@attrs.frozen
class Counterexample:
    """A state that satisfies the hypotheses, and a step after which the conjunct fails, as values of the language.

    All fields are empty if the solver says that there is one, but its values could not be read or are too large.
    """

    seconds: float
    constants: Mapping[str, Setting]
    state: Mapping[str, object]
    parameters: tuple[int, ...]
    successor: Mapping[str, object]


@attrs.frozen
class Unknown:
    """Neither proved nor refuted; never a success."""

    reason: str
    seconds: float


Result = Proved | Counterexample | Unknown
Decision = tuple[Obligation, Result]
Attempt = Callable[[Obligation, Query, float, bool], Answer]
"""A way to prove a query: (obligation, query, seconds, whether a core is wanted); 'unsat' means proved."""


def decide(
    induction: Induction,
    obligation: Obligation,
    seconds: float,
    core: bool = False,
    guide: Guide | None = None,
    first: Attempt | None = None,
) -> Result:
    """Decide one obligation in this process; `seconds` is the limit for each of its queries.

    `first` tries for a moment. Then `guide` looks for a counterexample with small bounds. Then `first` gets its full
    time, and at last the solver is asked with all hypotheses.
    """
    began = time.process_time()
    core_names, learnt = dict[str, None](), list[Learnt]()
    for query in obligation.queries:
        using: tuple[str, ...] | None = None
        answer = Answer("unknown", 0.0)
        if first is not None:
            answer = first(obligation, query, min(QUICK, seconds) if guide else seconds, core)
        if answer.status != "unsat" and guide is not None:
            at, hint = guide.least(obligation, query, seconds)
            if hint is not None and hint.query is not None and hint.answer is not None:
                return _read_counterexample(at.induction, obligation, hint.query, hint.answer, began)
            using = hint.using if hint is not None else None
            answer = first(obligation, query, seconds, core) if first is not None and seconds > QUICK else answer
        if answer.status == "unsat":
            core_names |= dict.fromkeys(answer.used_names)
            learnt += answer.learnt
            continue
        answer = _ask(induction, query, using, seconds, core)
        if answer.status == "unsat":
            core_names |= dict.fromkeys(answer.used_names)
        elif answer.status == "sat":
            return _counterexample(induction, obligation, query, answer, seconds, began)
        else:
            return Unknown(answer.reason, time.process_time() - began)
    return Proved(time.process_time() - began, tuple(core_names), tuple(learnt))


def _ask(induction: Induction, query: Query, using: tuple[str, ...] | None, seconds: float, core: bool) -> Answer:
    """Ask the solver for each part of the goal: first with the conjuncts `using`, then with all hypotheses."""
    end, core_names, answer = time.process_time() + seconds, dict[str, None](), Answer("unsat", 0.0)
    for part in conjuncts(query.goal):
        smaller = attrs.evolve(query, goal=part)
        for hypotheses in (using, None) if using is not None else (None,):
            left = max(0.001, end - time.process_time())
            limit = left / 2 if hypotheses is not None else left
            answer = ask(induction.assertions(smaller, hypotheses), limit, core or hypotheses is not None)
            if answer.status == "unsat":
                core_names |= dict.fromkeys(answer.used_names or hypotheses or ())
                break
        if answer.status != "unsat":
            return answer
    return attrs.evolve(answer, used_names=tuple(core_names))


def _counterexample(
    induction: Induction, obligation: Obligation, query: Query, answer: Answer, seconds: float, began: float
) -> Counterexample:
    """The counterexample, if possible one within the bounds that a run may have."""
    t = induction.translation
    if t.bounds:
        limits = {c.name: c.high for c in induction.design.constants()}
        small = [at_most(b, limits[n]) for n, b in t.bounds.items()]
        extra = [("bounds", x) for x in small if not isinstance(x, bool)]
        answer = ask([*induction.assertions(query), *extra], seconds, find=True)
    return _read_counterexample(induction, obligation, query, answer, began)


def _read_counterexample(
    induction: Induction, obligation: Obligation, query: Query, answer: Answer, began: float
) -> Counterexample:
    nothing, t = Counterexample(time.process_time() - began, {}, {}, (), {}), induction.translation
    if answer.status != "sat" or answer.value is None:
        return nothing
    reader = Reader(t.shapes, answer.value)
    types = {v.name: v.type for v in induction.design.variables if t.exists[v.name] is not False}
    actions = (induction.design.initial, *induction.design.actions)
    kinds = {name: t for a in actions if a.name == obligation.action for name, t in a.parameters}
    try:
        return Counterexample(
            time.process_time() - began,
            {k: v for k, v in t.settings.items() if v is not None}
            | {name: int(answer.value(term)) for name, term in t.bounds.items()},
            reader.state(types, query.old),
            tuple(reader.parameter(kinds[name], v) for name, v in query.choice.values.items() if name in kinds),
            {} if query.new is None else reader.state(types, query.new),
        )
    except TooLarge:
        return nothing


def prove(
    induction: Induction,
    obligations: Sequence[Obligation],
    seconds: float,
    workers: int = 2,
    progress: Callable[[Obligation, Result], None] = lambda _o, _r: None,
    core: bool = False,
    guide: Guide | None = None,
    first: Attempt | None = None,
    stop: Callable[[], bool] = lambda: False,
    effort: Callable[[Obligation], tuple[int, ...]] = lambda _: (),
) -> list[Decision]:
    """Decide all obligations in `workers` processes; `stop` ends early, and what is undecided then is Unknown.

    Those of most `effort` are begun first, so that the processes end together. Raises Unsound if no state satisfies all
    conjuncts, because they would imply anything.
    """
    results: dict[int, Result] = {}
    hard: list[int] = []
    for i, o in enumerate(obligations):
        if o.queries:
            hard.append(i)
        else:
            results[i] = Proved(0.0)
            progress(o, results[i])
    hard.sort(key=lambda i: effort(obligations[i]), reverse=True)
    times = {i: (3 if first is None else ATTEMPTS) * len(obligations[i].queries) for i in hard} | {TOGETHER: 1}

    def work(i: int) -> Result:
        if i == TOGETHER:
            return _together(induction, seconds)
        return decide(induction, obligations[i], seconds, core, guide, first)

    for i, result in WorkerPool(work, workers).run([TOGETHER, *hard], lambda i: seconds * times[i] + GRACE, stop):
        if i != TOGETHER:
            results[i] = result
            progress(obligations[i], result)
        elif isinstance(result, Proved):
            raise Unsound("no state satisfies all of the conjuncts together, so they would imply anything")
    return [(o, results.get(i, Unknown("it was not asked", 0.0))) for i, o in enumerate(obligations)]


def _together(induction: Induction, seconds: float) -> Result:
    """Proved if no state satisfies all conjuncts."""
    answer = ask(induction.together(), min(seconds, LONGEST_TOGETHER))
    refuted = answer.status == "unsat"
    return Proved(answer.seconds) if refuted else Unknown("they are not refuted", answer.seconds)


class Failure(RuntimeError):
    """A process failed by a mistake of insync's own; the message is its traceback."""


def _end_after(seconds: float) -> None:
    """The system ends this process once it has taken so much more processor time."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    soft = ceil(time.process_time() + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (soft if most == resource.RLIM_INFINITY else min(soft, most), most))


class WorkerPool:
    """Forked processes, so that they share the translated design; one that hangs is replaced."""

    def __init__(self, work: Callable[[int], Result], workers: int) -> None:
        self.work, self.workers = work, workers
        self._context = get_context("fork")
        self._running: dict[Connection, tuple[ForkProcess, int]] = {}
        self._idle: list[tuple[ForkProcess, Connection]] = []

    def run(
        self,
        tasks: Sequence[int],
        patience: Callable[[int], float],
        stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[int, Result]]:
        waiting = list(reversed(tasks))
        try:
            while (waiting or self._running) and not stop():
                while waiting and len(self._running) < self.workers:
                    process, connection = self._idle.pop() if self._idle else self._start()
                    task = waiting.pop()
                    connection.send((task, patience(task)))
                    self._running[connection] = process, task
                ready = set(wait(list(self._running), timeout=1.0))
                for connection in [c for c in self._running if c in ready]:
                    yield self._answer(connection)
        finally:
            for process, _ in self._running.values():
                process.kill()
            for process, _ in self._idle:
                process.kill()

    def _answer(self, connection: Connection) -> tuple[int, Result]:
        process, task = self._running.pop(connection)
        try:
            result: Result | Failure = connection.recv()
        except EOFError:
            process.join()
            late = process.exitcode == -signal.SIGXCPU
            reason = "the solver did not keep to its time limit" if late else "the solver's process ended (memory?)"
            return task, Unknown(reason, 0.0)
        if isinstance(result, Failure):
            raise result
        self._idle.append((process, connection))
        return task, result

    def _start(self) -> tuple[ForkProcess, Connection]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=self._serve, args=(ours, theirs), daemon=True)
        process.start()
        theirs.close()
        return process, ours

    def _serve(self, ours: Connection, theirs: Connection) -> None:
        ours.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this process decides what an interrupt means
        while True:
            try:
                task, seconds = theirs.recv()
            except EOFError:
                return
            _end_after(seconds)
            try:
                result: Result | Failure = self.work(task)
            except z3.Z3Exception as problem:
                result = Unknown(f"z3: {problem}", 0.0)
            except Exception as problem:
                result = Failure("".join(traceback.format_exception(problem)))
            theirs.send(result)
