"""Exit codes, and the exceptions that become one sentence on stderr."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    """The exit codes, which scripts can rely on."""

    HOLDS = 0
    AT_RISK = 1
    UNAVAILABLE = 2
    ASSUMPTION = 10
    DEADLOCK = 11
    SAFETY = 12
    LIVENESS = 13
    NOT_INDUCTIVE = 14
    INCONCLUSIVE = 20
    UNCOVERED = 21
    UNEXPECTED = 22
    TOO_SMALL = 23
    ENDED = 30
    USAGE = 64
    INPUT = 65
    INTERNAL = 70
    PIPE = 141


MEANING = {
    Exit.HOLDS: "holds",
    Exit.AT_RISK: "audit: at risk: one failure may lose a record, or a partition lacks replicas; "
    "drill: a partition may have no leader, or refuse writes",
    Exit.UNAVAILABLE: "audit: a partition has no leader, or refuses writes; audit, drill: the cluster does not answer",
    Exit.ASSUMPTION: "an assumption of the design does not hold: it has no initial state",
    Exit.DEADLOCK: "deadlock",
    Exit.SAFETY: "a safety property is violated; drill: an acknowledged record may be lost",
    Exit.LIVENESS: "a liveness property is violated",
    Exit.NOT_INDUCTIVE: "a proof fails: a counterexample to induction",
    Exit.INCONCLUSIVE: "inconclusive: a budget was spent, or only random walks were seen, or a part of a proof",
    Exit.UNCOVERED: "vacuous or uncovered",
    Exit.UNEXPECTED: "an expectation was not met",
    Exit.TOO_SMALL: "too small: nothing is violated, but the bounds leave no room for the faults asked for, "
    "would miss a known mistake, or end where harm begins",
    Exit.ENDED: "a broker ended unasked, or not in order; a system under test ended, hangs or is missing",
    Exit.USAGE: "wrong usage",
    Exit.INPUT: "a bad input file",
    Exit.INTERNAL: "a bug in insync",
}
"""The table of `insync --help` (141 is what a shell reports when the reader of a pipe went away)."""


class Problem(Exception):
    """What ends a command without an answer: a sentence, and its exit code."""

    exit: Exit


class UsageError(Problem):
    """The command cannot be carried out as given: exit 64."""

    exit = Exit.USAGE


class Unavailable(Problem):
    """The cluster that is asked does not answer: exit 2."""

    exit = Exit.UNAVAILABLE


class InputError(Problem):
    """A file is not what it should be: exit 65."""

    exit = Exit.INPUT


class Inconclusive(Problem):
    """Too little was explored for any answer: exit 20."""

    exit = Exit.INCONCLUSIVE


class Vacuous(Problem):
    """The answer would be true of nothing: exit 21."""

    exit = Exit.UNCOVERED


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """'; did you mean "x"?' with the nearest spelling, or nothing."""
    close = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else ""
