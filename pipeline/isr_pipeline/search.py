"""Breadth-first exploration by Spark, level by level: the contract of isr_check.engine, by the native kernels.

Every state belongs to one of a fixed number of buckets, by its hash. A level is one Spark job. Its tasks expand the
states of each bucket in the last level, and send the states that they reach to the buckets that own them. Each owner
drops the states that it has already and writes down the new ones. Between two levels everything is in the store of the
exploration. So no job depends on the memory or the disk of an executor, and a search that was killed goes on from the
last complete level.

Starting a job takes time. This process does small levels itself, with the same tasks on the same store, unless it would
first have to read many states that others have found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import attrs
import numpy as np

from isr_check.engine import BadCheckpoint, Exploration, Limits, Progress, silent
from isr_check.engine import Path as Behaviour
from isr_check.native.actions import Check
from isr_check.native.buffers import Words, address
from isr_check.native.kernels import Job, program
from isr_check.native.layout import SLACKS, Layout, Slack
from isr_check.native.question import Question, difference
from isr_check.native.search import PATIENCE
from isr_check.native.sharding import shard_program
from isr_pipeline import session
from isr_pipeline.arrow_rows import EXPANSION, FINDINGS, REMAKES, TIMES, Answer
from isr_pipeline.bucket_states import BucketStates
from isr_pipeline.locations import Location
from isr_pipeline.runners import LocalRunner, Runner, SparkRunner, Stopped
from isr_pipeline.store import Commit, Json, Remaking, Store
from isr_pipeline.task_kernels import KernelSpec, KernelWorker, digest, kernel_spec, seconds
from isr_pipeline.tasks import AddStates, ExpandStates, sum_reports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Overflow(Exception):
    """A value did not fit its cell of the packed state; the search starts again with wider cells."""


@attrs.frozen
class SearchMeans:
    """The store, a local folder for this process's visited sets, the number of buckets, and how to start Spark, which
    expands levels of more than `handover` states."""

    place: Location
    scratch: str
    buckets: int
    handover: int
    start: Callable[[], SparkSession]


MARGIN = 0.25
"""The share of what a level sends by which the next one may be larger than expected."""
READ = 8
"""Reading a state that another process has found takes about an eighth of the time of expanding one."""


class Search:
    """One exploration with one layout of packed states."""

    def __init__(self, question: Question, slack: Slack, means: SearchMeans) -> None:
        self.question, self.instance, self.on_steps = question, question.instance, question.on_steps
        symmetry = question.symmetry
        self.layout = Layout(self.instance, slack, symmetry.sorts if symmetry else ())
        made = program(self.instance, self.layout, question.on_states, question.on_steps, question.marks, symmetry)
        self.program, self.means, self.buckets = shard_program(made), means, means.buckets
        self.store = Store(means.place)
        self.limits, self.start, self.earlier = Limits(), time.monotonic(), 0.0
        self.progress: Callable[[Progress], None] = silent
        self.commits: list[Commit] = []
        self.cut, self.own = False, -1
        self.here, self.spark = LocalRunner(), cast("SparkRunner | None", None)

    # the plan, for a search that goes on later

    def plan(self) -> Json:
        return {
            "question": digest(repr((self.program.text, self.question.names))),
            "about": self.question.about(),
            "slack": SLACKS.index(self.layout.slack),
            "words": self.layout.words,
            "buckets": self.buckets,
        }

    def prepare(self) -> None:
        actions, symmetric = len(self.instance.actions), self.question.symmetry is not None
        self.spec = kernel_spec(self.program, self.means.place, actions, self.buckets, symmetric=symmetric)
        self.hand = KernelWorker(self.spec)

    def begin(self) -> None:
        self.store.begin(self.plan())
        self.prepare()
        self._add_initial()

    def resume(self) -> None:
        """Go on from the last complete level; BadCheckpoint if the folder has the levels of another question."""
        said, asked = self.store.plan(), self.plan()
        if said["question"] != asked["question"]:
            about = difference(said, self.question.about())
            raise BadCheckpoint(f"the exploration in {self.means.place} is of {about}")
        self.commits = self.store.commits()
        if not self.commits:
            self.begin()
            return
        self.store.settle(self.commits)
        self.prepare()
        self.earlier = self.commits[-1].seconds

    # levels

    @property
    def distinct(self) -> int:
        return sum(c.states for c in self.commits)

    @property
    def levels_by_check(self) -> dict[int, int]:
        return dict(self.commits[-1].found) if self.commits else {}

    @property
    def is_exhausted(self) -> bool:
        """Whether the last level is empty, so that all states were seen."""
        return bool(self.commits) and not self.commits[-1].states

    def elapsed(self) -> float:
        return self.earlier + time.monotonic() - self.start

    def undecided_mask(self, checks: list[Check], levels_by_check: dict[int, int]) -> int:
        return sum(1 << c.bit for c in checks if c.bit not in levels_by_check)

    def is_decided(self) -> bool:
        return self.question.is_decided(self.levels_by_check)

    def before(self) -> dict[int, int]:
        """How many states each bucket has."""
        sizes: dict[int, int] = {}
        for commit in self.commits:
            for bucket, size in commit.sizes.items():
                sizes[bucket] = sizes.get(bucket, 0) + size
        return sizes

    def behind(self) -> int:
        """How many states this process would have to read before it could do the next level by itself."""
        return sum(c.states for c in self.commits if c.level > self.own)

    def runner(self, states: int) -> Runner:
        """The runner for work that takes about as long as expanding this number of states."""
        if states <= self.means.handover:
            return self.here
        if self.spark is None:
            self.spark = SparkRunner(self.means.start(), self.buckets, self._stopping, self.tell)
        return self.spark

    def task_spec(self, runner: Runner) -> KernelSpec:
        """The kernels for tasks of this runner. Optimised machine code is made for Spark, and for long searches."""
        if runner is not self.here:
            return attrs.evolve(self.spec, best=True)
        return attrs.evolve(self.spec, scratch=self.means.scratch, best=time.monotonic() - self.start > PATIENCE)

    def close(self) -> None:
        if self.spark is not None:
            self.spark.close()

    def _stopping(self) -> bool:
        seconds = self.limits.max_seconds
        return self.limits.stop() or (seconds is not None and self.elapsed() - self.earlier >= seconds)

    def tell(self) -> None:
        last, spark = self.commits[-1], self.spark.spark if self.spark is not None else None
        progress = Progress(last.level, last.states, self.distinct, sum(last.taken), self.elapsed())
        if spark is not None:
            done = session.tasks(spark)
            told = (f"{done[0]} of {done[1]} tasks",) if done else ()
            progress = attrs.evolve(progress, beside=(*told, *self.again()), page=session.page(spark))
        elif self._work() > self.means.handover:
            progress = attrs.evolve(progress, beside=("starting Spark",))
        self.progress(progress)

    def _work(self) -> int:
        """How many states the next level is worth, for who does it in this process."""
        return self.commits[-1].states + self.behind() // READ

    def again(self) -> tuple[str, ...]:
        """What it took so far to make visited sets again that their tasks did not find."""
        whole = sum((c.remade for c in self.commits), Remaking())
        if not whole.buckets:
            return ()
        return (f"{whole.buckets} visited sets made again in {whole.seconds:.1f} s",)

    def _add_initial(self) -> None:
        """Level 0: the initial states, made in this process."""
        hand, words = self.hand, self.layout.words
        most = self.program.most
        size = 16
        while size < 4 * (most + 1):
            size *= 2
        table, found = np.zeros(size, dtype=np.uint64), np.zeros((most + 2, words), dtype=np.uint64)
        hand.worker.set([(Job.STATES, address(found)), (Job.TABLE, address(table)), (Job.MASK, size - 1)])
        hand.worker.next, hand.worker.limit = 1, most + 1
        hand.run("initial", 0, 0)
        sorted_states, bounds = hand.by_owner(found, 1, hand.worker.next)
        spec = self.task_spec(self.here)
        sizes, names, decided_mask, orbits = dict[int, int](), dict[int, int](), 0, 0
        check_mask = self.undecided_mask(self.question.on_states, {})
        for bucket in range(self.buckets):
            if bounds[bucket] < bounds[bucket + 1]:
                with BucketStates(spec, hand, bucket, 0, 0) as bucket_set:
                    bucket_set.absorb(sorted_states[bounds[bucket] : bounds[bucket + 1]])
                    bucket_set.keep()
                    sizes[bucket], names[bucket] = bucket_set.new, bucket_set.name
                    decided_mask |= bucket_set.decided_checks(check_mask)
                    orbits += bucket_set.orbits()
        found_at = {bit: 0 for bit in _bits(decided_mask)}
        nothing = (0,) * len(self.instance.actions), (0,) * max(1, self.program.guards)
        self._commit(Commit(0, sizes, names, *nothing, 0, found_at, orbits, self.elapsed(), 0, {}))
        self.own = 0

    def level(self) -> None:
        """Expand the last level."""
        last, levels_by_check = self.commits[-1], self.levels_by_check
        level = last.level + 1
        runner = self.runner(self._work())
        spec = self.task_spec(runner)
        source = ExpandStates(
            spec, last.level, self.undecided_mask(self.question.on_steps, levels_by_check), last.names
        )
        sink = AddStates(
            spec, level, self.undecided_mask(self.question.on_states, levels_by_check), self.before(), self._growth()
        )
        answers = runner.shuffle(source, sorted(last.sizes), sink, f"level {level}, from {last.states:,} states")
        expansion = sum_reports(self.spec, [n for _, kind, n in answers if kind == EXPANSION])
        assert expansion.states == last.states, "each state of the level was expanded once"
        if expansion.overflow:
            if self.layout.slack is not SLACKS[-1]:
                raise Overflow
            self.cut = True
        new = [(bucket, n) for bucket, kind, n in answers if kind == FINDINGS]
        assert len({bucket for bucket, _ in new}) == len(new), "each bucket has one owner"
        decided = 0
        for _, n in new:
            decided |= int(n[1])
        levels_by_check = {
            **{bit: level for bit in _bits(decided)},
            **{b: last.level for b in _bits(expansion.decided_mask)},
            **levels_by_check,
        }
        self.store.write_actions(last.level, dict(zip(self._names(), expansion.steps_by_action, strict=True)))
        self._commit(
            Commit(
                level,
                {bucket: int(n[0]) for bucket, n in new if n[0]},
                {bucket: int(n[3]) for bucket, n in new if n[0]},
                _sum(last.taken, expansion.steps_by_action),
                _sum(last.refused, expansion.refusals),
                last.expanded + expansion.states,
                levels_by_check,
                last.orbits + sum(int(n[2]) for _, n in new),
                self.elapsed(),
                expansion.sent_count,
                seconds([n for _, kind, n in answers if kind == TIMES]),
                _remaking(answers),
            )
        )
        self.own = level if runner is self.here else self.own

    def _growth(self) -> int:
        """About how many bytes more Spark will write to its disks for the next level than it has for this one."""
        before, last = [0, *(c.sent for c in self.commits)][-2:]
        rate = last / before if before else 1.0
        return int(8 * self.layout.words * last * (max(rate * rate - rate, 0.0) + MARGIN))

    def _names(self) -> list[str]:
        return [a.name for a in self.instance.actions]

    def _commit(self, commit: Commit) -> None:
        self.store.commit(commit)
        self.commits.append(commit)

    def run(self) -> None:
        """Explore until all states are seen, all checks are decided, or a limit is reached."""
        try:
            while not (self.is_exhausted or self.cut or self.is_decided()):
                states = self.limits.max_states
                self.cut = self._stopping() or (states is not None and self.distinct >= states)
                if not self.cut:
                    self.tell()
                    self.level()
        except Stopped:
            self.cut = True
        self.limits = Limits()  # a search that was stopped still finds the counterexamples of what it has decided

    def representative(self, words: Words) -> Words:
        """The representative of the state's orbit, written over the state; the state itself without symmetry."""
        if self.question.symmetry is not None:
            before = self.hand.worker.job.copy()
            self.hand.worker.set([(Job.OUT, address(words))])
            self.hand.run("rename", 0, 1)
            self.hand.worker.job[:] = before
        return words

    def exploration(self, paths: dict[int, Behaviour]) -> Exploration:
        """The result; `paths` has the counterexample of each decided check, by its bit."""
        last, found, complete = self.commits[-1], self.levels_by_check, self.is_exhausted and not self.cut
        sizes = tuple(c.states for c in self.commits if c.states or c.level == 0)
        question = self.question
        return Exploration(
            question.findings(found, paths, complete=complete),
            complete,
            self.distinct,
            sum(last.taken),
            len(sizes) - 1,
            self.elapsed(),
            sizes,
            dict(zip(self._names(), last.taken, strict=True)),
            question.guards(self.program.guard_base, last.refused, last.expanded),
            last.orbits if question.symmetry is not None else None,
        )


def _remaking(answers: Sequence[Answer]) -> Remaking:
    made = [n for _, kind, n in answers if kind == REMAKES]
    return Remaking(len(made), sum(int(n[0]) for n in made), sum(int(n[1]) for n in made) / 1e9)


def _bits(mask: int) -> list[int]:
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]


def _sum(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))
