"""Limits of questions to z3: a machine that is busy with other work answers as a quiet one does.

Without these a limit could be by the clock, and a proof would end UNKNOWN where many work at once.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import pytest

from isr_check.smt.obligations import Proved, Result, Unknown, WorkerPool
from isr_check.smt.processor_time import check
from isr_check.smt.terms.logic import z3

pytestmark = [pytest.mark.solver, pytest.mark.processes]

LIMIT, STANDSTILL = 3.0, 3.5
"""Seconds; a question of `pigeons(8)` takes some 0.5 s."""


def pigeons(holes: int) -> Any:
    """A solver with a contradiction that it takes long to see: one pigeon more than holes."""
    solver = z3.SimpleSolver()
    there = [[z3.Bool(f"{p} in {h}") for h in range(holes)] for p in range(holes + 1)]
    for row in there:
        solver.add(z3.Or(row))
    for h in range(holes):
        solver.add(z3.AtMost(*(row[h] for row in there), 1))
    return solver


def by_processor_time(solver: Any, seconds: float) -> str:
    return check(solver, seconds)


def by_clock(solver: Any, seconds: float) -> str:
    solver.set("timeout", int(1000 * seconds))
    return str(solver.check())


def answer(ask: Callable[[Any, float], str], said: Connection) -> None:
    solver = pigeons(8)
    said.send("begins")
    said.send(ask(solver, LIMIT))


@pytest.mark.parametrize(("ask", "expected"), [(by_processor_time, "unsat"), (by_clock, "unknown")])
def test_a_question_that_stands_still_is_answered_all_the_same(ask: Callable[[Any, float], str], expected: str) -> None:
    """As others' work keeps it waiting; by the clock there is no answer."""
    context = get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=answer, args=(ask, theirs))
    process.start()
    assert process.pid is not None
    assert ours.recv() == "begins"
    time.sleep(0.02)
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(STANDSTILL)
    os.kill(process.pid, signal.SIGCONT)
    assert ours.recv() == expected
    process.join()


def test_a_question_ends_at_its_limit() -> None:
    began = time.process_time()
    assert check(pigeons(12), 0.3) == "unknown"
    assert 0.3 <= time.process_time() - began < 1.0


def test_the_next_question_to_the_same_solver_is_asked_anew() -> None:
    solver = pigeons(12)
    solver.push()
    assert check(solver, 0.2) == "unknown"
    solver.add(z3.BoolVal(False))
    assert check(solver, 0.2) == "unsat"


def test_a_process_that_takes_longer_is_ended_and_another_goes_on() -> None:
    def work(task: int) -> Result:
        while task == 0:
            pass
        return Proved(0.0)

    results = dict(WorkerPool(work, 1).run([0, 1], lambda _: 0.5))
    late, after = results[0], results[1]
    assert isinstance(late, Unknown)
    assert late.reason == "the solver did not keep to its time limit"
    assert isinstance(after, Proved)
