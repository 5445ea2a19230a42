"""What the model answers: from the table that comes with the package, or by exploring.

The table is a JSON file. A run that was made is stored with its design's hash, its bounds, its verdict and, of a
violation, the steps. An answer whose design has changed since is not used (`tests/isr_audit` then fails). One run may
answer several questions: what is lost under some faults is lost under more, and what is kept under some is kept under
fewer (`implies`). A proof (`insync prove`) answers for every value of the bounds that it leaves open.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path as File
from typing import Final, NotRequired, TypedDict, cast

import attrs

from isr_audit.questions import DECISIVE_VERDICTS, LOSS, Question, constants_of
from isr_check.engine import Engine, Limits, Path, Progress, Verdict
from isr_check.native import explore
from isr_check.reference import Evaluator
from isr_lang import Value
from isr_protocol.by_name import DESIGNS
from isr_protocol.promises.worth import with_probes, worth
from isr_trace.replay import record
from isr_trace.trace import Trace

SCHEMA: Final = "insync/audit-answers/1"
TABLE: Final = File(__file__).parent / "answers.json"


class AnswerEntry(TypedDict):
    """`initial` and `steps` are those of `isr_check.engine.Path`; null where nothing is violated.

    `open`, of a proof: the bounds that may have any value. `without`: the actions that are left out.
    """

    design: str
    promise: str
    constants: dict[str, Value]
    verdict: str
    states: int
    initial: list[int] | None
    steps: list[tuple[str, list[int]]] | None
    open: NotRequired[list[str]]
    without: NotRequired[list[str]]


class AnswerTable(TypedDict):
    """`hashes`: the model hash of each design when it was explored."""

    schema: str
    hashes: dict[str, str]
    answers: list[AnswerEntry]


@attrs.frozen
class Answer:
    """What one run found. `states` are orbits; `path` is a shortest violation. UNKNOWN: the search was ended early.

    PROVED: no state was explored, and the bounds in `open` may have any value, whatever the question's are.
    """

    question: Question
    verdict: str
    states: int
    path: Path | None = None
    open: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """What asks the same again."""
        return self.question.proof_command(self.open) if self.verdict == Verdict.PROVED else self.question.command()

    @property
    def steps(self) -> int | None:
        """How many steps the shortest violation has; None where there is none."""
        return len(self.path.steps) if self.path is not None else None

    def trace(self) -> Trace | None:
        """The violation, run again on the model; None where there is none."""
        if self.path is None:
            return None
        evaluator = Evaluator(self.question.instance())
        return record(
            evaluator,
            self.path.initial,
            self.path.steps,
            property_name=self.question.promise,
            verdict=self.verdict,
            shortest=True,
        )


def implies(ran: Answer, question: Question) -> bool:
    """Whether the run answers the question. Bounds and budgets are "at most", and unclean election and reads from
    followers add behaviours; so what happens within less happens within more.

    Before eligible leader replicas a larger minimum does nothing but refuse writes and acknowledgements
    (`isr_protocol.replication`: `leader_appends`, `acknowledged`). So there a smaller one adds behaviours.
    """
    of = ran.question
    if (of.design, of.promise) != (question.design, question.promise) or ran.verdict not in DECISIVE_VERDICTS:
        return False
    less, more = (of, question) if ran.verdict == Verdict.VIOLATED else (question, of)
    growing = {c.name for c in constants_of(of.design) if not c.names and c.name not in _PARTITION_CONSTANTS} | {
        "unclean",
        "follower_reads",
    }
    shrinking = {"min_insync"} if of.design in REFUSES_ONLY and of.promise == LOSS else set[str]()
    return all(
        n in ran.open
        or (
            cast("int", v) <= cast("int", more.constants[n])
            if n in growing
            else cast("int", v) >= cast("int", more.constants[n])
            if n in shrinking
            else v == more.constants[n]
        )
        for n, v in less.constants.items()
    )


REFUSES_ONLY: Final = ("kraft-3.5", "kip-841", "kip-497", "kip-320", "kip-279", "kip-101", "zookeeper", "kafka-0.8")
"""Designs whose min.insync.replicas decides on writes and acknowledgements, and on nothing else."""


_PARTITION_CONSTANTS: Final = ("replicas", "min_insync")
"""Numbers of which more is another partition, and not more behaviour of the same."""


def answer_among(answers: Iterable[Answer], question: Question) -> Answer | None:
    """The answer of a run that was made: a proof without bounds, or one of this very question, if there is one."""
    runs = list(answers)
    proof = next((a for a in runs if a.open and implies(a, question)), None)
    same = proof or next((a for a in runs if a.question == question), None)
    if same is not None and same.verdict in DECISIVE_VERDICTS:
        return same
    return next((a for a in runs if implies(a, question)), same)


def fewer(question: Question, replicas: int) -> Question:
    """The same question of a partition with fewer replicas, and with room for a second record."""
    return attrs.evolve(question, constants={**question.constants, "replicas": replicas, "log": 2, "records": 2})


def loss_of_fewer(answers: Iterable[Answer], question: Question) -> Answer | None:
    """A loss with fewer replicas, as many as the minimum or more, which is a loss with more.

    The others may lag from the start, leave the ISR in one change that leaves it at or above the minimum (so that none
    of them becomes an eligible leader replica), and never come back.
    """
    runs = list(answers)
    least, most = cast("int", question.constants["min_insync"]), cast("int", question.constants["replicas"])
    for replicas in range(most - 1, least - 1, -1):
        found = answer_among(runs, fewer(question, replicas))
        if found is not None and found.verdict == Verdict.VIOLATED:
            return found
    return None


def is_of_whole_disks(run: Answer) -> bool:
    """Whether whoever loses power in this loss has nothing left of its log, as after the loss of its disk."""
    steps = run.path.steps if run.path is not None else ()
    return all(parameters[1] == 0 for action, parameters in steps if action == POWER_LOSS)


def loss_of_disk(answers: Iterable[Answer], question: Question) -> Answer | None:
    """A loss among the known in which who loses power has nothing left of its log."""
    runs = [a for a in answers if a.path is not None and is_of_whole_disks(a)]
    same = next((a for a in runs if implies(a, question)), None)
    return same or loss_of_fewer(runs, question)


POWER_LOSS: Final = "broker_loses_power"
FAILS: Final = ("broker_crashes", POWER_LOSS)
RETURNS: Final = ("broker_restarts", "broker_restarts_unnoticed")


def loss_in_rack(answers: Iterable[Answer], question: Question, replicas: int, in_rack: int) -> Answer | None:
    """A loss among the known in which what fails may be one rack, which has `in_rack` of a partition's `replicas`.

    Nobody is back before the last of them is down. Those who do not fail find room outside of the rack. Replicas that
    the run does not have lag, as in `loss_of_fewer`: that they go down with the rack changes nothing.
    """
    runs = list(answers)
    least, most = cast("int", question.constants["min_insync"]), cast("int", question.constants["replicas"])
    for explored_with in range(most, least - 1, -1):
        like = question if explored_with == most else fewer(question, explored_with)
        for run in runs:
            if run.path is not None and implies(run, like) and _one_outage(run.path, explored_with, replicas, in_rack):
                return run
    return None


def _one_outage(path: Path, explored_with: int, replicas: int, in_rack: int) -> bool:
    failing = [(at, parameters[0]) for at, (action, parameters) in enumerate(path.steps) if action in FAILS]
    if not failing:
        return True
    down = {broker for _, broker in failing}
    between = path.steps[failing[0][0] : failing[-1][0]]
    back = any(action in RETURNS for action, _ in between)
    return not back and explored_with - len(down) <= replicas - in_rack


def engine_of(question: Question) -> Engine:
    """What explores it as its command says."""
    return partial(explore, symmetry=question.symmetric, reduction=question.reduction)


def explored(question: Question, limits: Limits, progress: Callable[[Progress], None]) -> Answer:
    """Explore now.

    A promise that is kept counts only where what it speaks about happens and the bounds leave room for the faults.
    """
    instance, engine = question.instance(), engine_of(question)
    watched, wanted = with_probes(instance, (question.promise,))
    found = worth(instance, engine(watched, wanted, limits, progress), (question.promise,), engine, limits).exploration
    finding = found.finding(question.promise)
    verdict = Verdict.UNKNOWN if finding.verdict is Verdict.BUDGETED else finding.verdict
    return Answer(question, verdict.value, found.distinct, finding.path if verdict is Verdict.VIOLATED else None)


# The table


def read_table(file: File = TABLE) -> list[Answer]:
    """The stored answers whose designs are what they were."""
    if not file.exists():
        return []
    table = _table(file.read_text(encoding="utf-8"))
    fresh = {name for name, digest in table["hashes"].items() if DESIGNS[name].model_hash() == digest}
    return [_answer(entry) for entry in table["answers"] if entry["design"] in fresh]


def _table(text: str) -> AnswerTable:
    return cast("AnswerTable", json.loads(text))


def write_table(answers: Sequence[Answer], file: File = TABLE) -> None:
    """One line for each answer, so that a change of one is one line of a diff."""
    names = sorted({a.question.design for a in answers})
    hashes = {name: DESIGNS[name].model_hash() for name in names}
    rows = ",\n".join("  " + json.dumps(_entry(a)) for a in answers)
    head = f'{{\n"schema": {json.dumps(SCHEMA)},\n"hashes": {json.dumps(hashes)},\n'
    file.write_text(f'{head}"answers": [\n{rows}\n]\n}}\n', encoding="utf-8")


def _entry(answer: Answer) -> AnswerEntry:
    of, path = answer.question, answer.path
    entry = AnswerEntry(
        design=of.design,
        promise=of.promise,
        constants=dict(of.constants),
        verdict=answer.verdict,
        states=answer.states,
        initial=list(path.initial) if path is not None else None,
        steps=[(action, list(parameters)) for action, parameters in path.steps] if path is not None else None,
    )
    if answer.open:
        entry["open"] = list(answer.open)
    if of.without:
        entry["without"] = list(of.without)
    return entry


def _answer(entry: AnswerEntry) -> Answer:
    path = None
    if entry["initial"] is not None and entry["steps"] is not None:
        path = Path(tuple(entry["initial"]), tuple((a, tuple(p)) for a, p in entry["steps"]))
    asked = Question(entry["design"], entry["promise"], entry["constants"], tuple(entry.get("without", ())))
    return Answer(asked, entry["verdict"], entry["states"], path, tuple(entry.get("open", ())))
