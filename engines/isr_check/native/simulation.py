"""Random walks by native code: those of isr_check.simulation, walk by walk, from the kernels of the exploration.

A kernel makes the walks of a span of numbers and says of each how long it was and which checks it decided. Such a walk
is then made again by the reference evaluator, which gives the path. So native code finds, and the reference confirms.

Walks are made in rounds, each longer than the one before. After a round nothing that is reported depends on which
worker made which walk.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from isr_check.engine import Exploration, Limits, Progress, silent
from isr_check.native.actions import DECISIONS, OVERFLOW
from isr_check.native.assembly import Code, Int, signed_value
from isr_check.native.buffers import Numbers, Worker, address
from isr_check.native.kernels import Job, Kernels, Program, model
from isr_check.native.layout import SLACKS, Layout, Slack
from isr_check.native.machine import Machine
from isr_check.native.question import Question
from isr_check.native.search import PATIENCE, Overflow
from isr_check.native.team import Span, Team, spans
from isr_check.simulation import (
    GAMMA,
    LAST_SHIFT,
    LONGEST_WALK,
    ROUNDS,
    TELL_EVERY,
    WORD,
    Dice,
    Simulation,
    Walks,
    mix_word,
)
from isr_lang import Instance

CHUNK = 32
"""How many walks one call of the kernel makes; so many are in the first round."""
LONGEST_ROUND = 1 << 12
"""The most walks between two looks at what they found."""
MOST_COUNTED = 1 << 16
"""Up to so many distinct states are counted; more are estimated, with a standard error of 0.4 %."""
LARGEST = (1 << 63) - 1
"""The largest hash of a state, here of 63 bits."""


class WalkingKernels(Kernels):
    """The kernels of a module that walks at random."""

    def walk(self, actions: int) -> str:
        """Make the walks START..END of SEED; RESULTS has the length of each, LABELS the checks that it decides.

        HASHES gets NEXT hashes of the states that each walk met, those below LIMIT, each once a walk. MEETINGS counts
        these states whatever their hash, and SUM all successors.
        """
        code, job = self._kernel("walk")
        start, seed, results, labels = (job(j) for j in (Job.START, Job.SEED, Job.RESULTS, Job.LABELS))
        steps, report = code.slot(0), job(Job.REPORT)
        walker = _Walker(self, code, job, actions)
        with code.loop(start, job(Job.END)) as (walk, _):
            walker.dice.begin(code.raw("add", seed, walk))
            code.store(report, DECISIONS, 0)
            code.store(walker.decided_bits, 0, 0)
            code.store(steps, 0, 0)
            with code.when(walker.begin()), code.loop(0, LONGEST_WALK + 1) as (step, done):
                walker.look(step, done)
                walker.expand(step, done)
                walker.choose()
                code.store(steps, 0, code.raw("add", step, 1))
            at = code.sub(walk, start)
            found = code.raw("or", code.load(walker.decided_bits, 0), code.load(report, DECISIONS))
            code.store(results, at, code.load(steps, 0))
            code.store(labels, at, code.raw("and", found, walker.check_mask))
        code.store("%job", Job.NEXT, code.load(walker.hash_count, 0))
        code.store("%job", Job.SUM, code.load(walker.generated, 0))
        code.store("%job", Job.MEETINGS, code.load(walker.meetings, 0))
        code.effect("ret void")
        return code.text()


class _Dice:
    """Writes what isr_check.simulation.Dice does."""

    def __init__(self, code: Code) -> None:
        self.code, self.state = code, code.slot(0)

    def mix_word(self, word: str) -> str:
        code = self.code
        for shift, factor in ROUNDS:
            word = code.raw("mul", code.raw("xor", word, code.raw("lshr", word, shift)), signed_value(factor))
        return code.raw("xor", word, code.raw("lshr", word, LAST_SHIFT))

    def begin(self, walk: str) -> None:
        """`walk` is the mixed seed plus the number of the walk."""
        self.code.store(self.state, 0, self.mix_word(walk))

    def below(self, count: Int) -> str:
        code = self.code
        state = code.raw("add", code.load(self.state, 0), signed_value(GAMMA))
        code.store(self.state, 0, state)
        return code.raw("lshr", code.raw("mul", code.raw("lshr", self.mix_word(state), 32), count), 32)


class _Walker:
    """Writes the parts of a walk. OUT has the walk's state, and after it the state's successors."""

    def __init__(self, kernels: WalkingKernels, code: Code, job: Callable[[Job], str], actions: int) -> None:
        self.kernels, self.code, self.job, self.actions = kernels, code, job, actions
        self.cells, self.new, self.state = job(Job.CELLS), job(Job.NEW), job(Job.OUT)
        self.refusals, self.report, self.steps_by_action = job(Job.REFUSED), job(Job.REPORT), job(Job.TAKEN)
        self.hashes, self.limit, self.check_mask = job(Job.HASHES), job(Job.LIMIT), job(Job.WANTED)
        self.successors = code.element(self.state, kernels.words)
        self.dice, self.counts = _Dice(code), code.array([0] * actions)
        self.decided_bits, self.hash_count = code.slot(0), code.slot(0)
        self.generated, self.meetings = code.slot(job(Job.SUM)), code.slot(job(Job.MEETINGS))
        self.walk_hashes = code.space(LONGEST_WALK + 1)

    def begin(self) -> str:
        """Choose an initial state; whether there is one."""
        code, arguments = self.code, f"ptr {self.successors}, ptr {self.refusals}, ptr {self.report}, ptr null, i64 0"
        code.effect(f"call void @unpack(ptr {self.state}, ptr {self.cells})")
        n = code.value(f"call i64 @first(ptr {self.cells}, ptr {self.new}, ptr {self.state}, i64 1, {arguments})")
        self._enter(self.dice.below(n))
        return code.compare("ne", n, 0)

    def _enter(self, place: str) -> None:
        """Go to the successor at this place."""
        code, words = self.code, self.kernels.words
        target = self.kernels.visited.state(code, self.successors, place)
        for w in range(words):
            code.store(self.state, w, code.load(target, w))
        code.effect(f"call void @unpack(ptr {self.state}, ptr {self.new})")

    def look(self, step: str, end_label: str) -> None:
        """Test the checks of states, whose cells are in NEW, and keep the hash if it is new to this walk.

        The walk is done where a value is out of range.
        """
        code = self.code
        self._decide(f"call i64 @states(ptr {self.new}, ptr {self.new}, i64 {self.check_mask})")
        place, h = code.load(self.hash_count, 0), code.raw("lshr", self.kernels.visited.hash(code, self.state), 1)
        code.effect(f"store i64 {h}, ptr {code.element(self.hashes, place)}, align 8")
        repetition = code.slot(0)
        with code.loop(0, step) as (earlier, _):
            same = code.compare("eq", code.load(self.walk_hashes, earlier), h)
            code.include(repetition, 0, code.value(f"zext i1 {same} to i64"))
        code.store(self.walk_hashes, step, h)
        fresh = code.raw("xor", code.load(repetition, 0), 1)
        code.store(self.meetings, 0, code.raw("add", code.load(self.meetings, 0), fresh))
        small = code.value(f"zext i1 {code.compare('slt', h, self.limit)} to i64")
        code.store(self.hash_count, 0, code.raw("add", place, code.raw("and", small, fresh)))
        type_ok = self.kernels.marks.type_ok
        if type_ok is not None and self.kernels.layout.slack.number:
            beyond = code.bits_and(code.load(self.decided_bits, 0), 1 << type_ok)
            code.leave_if(code.compare("ne", beyond, 0), end_label)

    def _decide(self, call: str) -> None:
        self.code.include(self.decided_bits, 0, self.code.value(call))

    def expand(self, step: str, end_label: str) -> None:
        """Find the successors; the walk is done where there are none, and after its last step."""
        code = self.code
        for i in range(self.actions):
            code.store(self.counts, i, 0)
        n = code.value(
            f"call i64 @successors(ptr {self.cells}, ptr {self.new}, ptr {self.state}, i64 1, ptr {self.successors}, "
            f"ptr {self.refusals}, ptr {self.report}, i64 0, ptr {self.counts})"
        )
        code.store(self.generated, 0, code.raw("add", code.load(self.generated, 0), n))
        code.leave_if(code.compare("eq", n, 0), end_label)
        code.leave_if(code.compare("eq", step, LONGEST_WALK), end_label)

    def choose(self) -> None:
        """Take one step of one of the enabled actions, and test the checks of steps on it."""
        code = self.code
        options: Int = 0
        total: Int = 0
        before = list[tuple[Int, Int, Int, str]]()
        for i in range(self.actions):
            n = code.load(self.counts, i)
            enabled = code.compare("ne", n, 0)
            before.append((options, total, n, enabled))
            options = code.raw("add", options, code.value(f"zext i1 {enabled} to i64"))
            total = code.raw("add", total, n)
        rank = self.dice.below(options)
        choice: list[Int] = [0, 0, 0]
        for i, (earlier, start, count, enabled) in enumerate(before):
            hit = code.value(f"and i1 {code.compare('eq', earlier, rank)}, {enabled}")
            pairs = zip((i, start, count), choice, strict=True)
            choice = list[Int](code.value(f"select i1 {hit}, i64 {a}, i64 {b}") for a, b in pairs)
        action, first, size = choice
        taken = code.element(self.steps_by_action, action)
        code.effect(f"store i64 {code.raw('add', code.value(f'load i64, ptr {taken}'), 1)}, ptr {taken}")
        self._enter(code.raw("add", first, self.dice.below(size)))
        self._decide(f"call i64 @steps(ptr {self.cells}, ptr {self.new}, i64 {self.check_mask})")


def _program(question: Question, layout: Layout) -> Program:
    marks = question.marks
    made = model(question.instance, layout, question.on_states, question.on_steps, marks, [])
    kernels = WalkingKernels(layout, made.most, marks, None)
    count = len(made.actions)
    return made.program([kernels.unpack(), kernels.successors(made.actions), kernels.walk(count)], ("walk",))


class Sketch:
    """How many distinct states there were, and how often each: the smallest MOST_COUNTED of their hashes are kept.

    The counts are exact as long as there are not more than that, and no two of them have the same 63 bits. Beyond, the
    density of the smallest tells how many there are (Bar-Yossef et al., RANDOM 2002). These are then a sample of the
    states that does not depend on how often a state is met.
    """

    def __init__(self) -> None:
        self.smallest: Numbers = np.zeros(0, dtype=np.int64)
        self.times: Numbers = np.zeros(0, dtype=np.int64)
        self.limit = LARGEST

    def add(self, hashes: list[Numbers]) -> None:
        """Add hashes, of which those at the limit or above may be left out."""
        more = np.concatenate([self.smallest, *hashes])
        times = np.ones(len(more), dtype=np.int64)
        times[: len(self.times)] = self.times
        unique, places = np.unique(more, return_inverse=True)
        sums = np.zeros(len(unique), dtype=np.int64)
        np.add.at(sums, places, times)
        self.smallest, self.times = unique[:MOST_COUNTED], sums[:MOST_COUNTED]
        if len(self.smallest) == MOST_COUNTED:
            self.limit = int(self.smallest[-1])

    @property
    def count(self) -> int:
        if self.limit == LARGEST:
            return len(self.smallest)
        return (MOST_COUNTED - 1) * LARGEST // self.limit

    def states_met(self, times: int) -> int:
        """How many distinct states were added exactly so many times."""
        if self.limit == LARGEST:
            return int(np.count_nonzero(self.times == times))
        return int(np.count_nonzero(self.times[:-1] == times)) * LARGEST // self.limit  # the last is no longer counted


class _NativeWalks(Walks):
    """Random walks with one layout."""

    def __init__(
        self, instance: Instance, property_names: tuple[str, ...], seed: int, slack: Slack, threads: int
    ) -> None:
        super().__init__(instance, property_names)
        self.seed, self.slack, self.property_names = seed, slack, property_names
        self.question = Question(instance, property_names, None)
        program = _program(self.question, Layout(instance, slack))
        self.machine = Machine(program.text, program.kernels)
        self.workers = [Worker(program, len(instance.actions), (0, 0)) for _ in range(threads)]
        self.hashes = {id(w): np.zeros(CHUNK * (LONGEST_WALK + 1) + 1, dtype=np.int64) for w in self.workers}
        for worker in self.workers:
            worker.set([(Job.HASHES, address(self.hashes[id(worker)]))])
            worker.set([(Job.SEED, int(np.uint64(mix_word(seed & WORD)).astype(np.int64)))])
        self.team, self.sketch = Team(self.workers), Sketch()
        self.cut = False

    def round(self, first: int, last: int, stop: Callable[[], bool]) -> None:
        """Make the walks first..last, but for those that are left out because of `stop`."""
        lengths, decided_bits = (np.zeros(last - first, dtype=np.int64) for _ in range(2))
        check_mask = sum(1 << bit for bit, (name, _) in enumerate(self.names) if name not in self.evidence)
        state_hashes: list[Numbers] = []
        span_sizes: list[int] = []

        def make(worker: Worker, span: Span) -> Span | None:
            if worker is self.workers[0]:
                self.cut = self.cut or stop()
            if self.cut:
                return span
            worker.set([(Job.RESULTS, address(lengths[span[0] - first :]))])
            worker.set([(Job.LABELS, address(decided_bits[span[0] - first :]))])
            worker.first = worker.next = 0
            worker.limit = self.sketch.limit
            worker.run(self.machine.run["walk"], *span, check_mask)
            if worker.report[OVERFLOW] and self.slack is not SLACKS[-1]:
                self.cut = True
            state_hashes.append(self.hashes[id(worker)][: worker.next].copy())
            span_sizes.append(span[1] - span[0])
            return None

        self.team.share(spans([(first, last)], CHUNK), make)
        if any(worker.report[OVERFLOW] for worker in self.workers):
            if self.slack is not SLACKS[-1]:
                raise Overflow
            self.cut = True
        self.walks_made += sum(span_sizes)
        self._collect(first, lengths, decided_bits, state_hashes)

    def _collect(self, first: int, lengths: Numbers, decided_bits: Numbers, state_hashes: list[Numbers]) -> None:
        self.sketch.add(state_hashes)
        self.distinct, self.is_estimate = self.sketch.count, self.sketch.limit < LARGEST
        self.deepest = max(self.deepest, int(lengths.max()))
        self.once, self.twice = self.sketch.states_met(1), self.sketch.states_met(2)
        self.generated = sum(int(w.job[Job.SUM]) for w in self.workers)
        self.meetings = sum(int(w.job[Job.MEETINGS]) for w in self.workers)
        for i in range(len(self.instance.actions)):
            self.steps_by_action[i] = sum(int(w.steps_by_action[i]) for w in self.workers)
        for walk in decided_bits.nonzero()[0]:
            names = [name for bit, (name, _) in enumerate(self.names) if int(decided_bits[walk]) >> bit & 1]
            if any(name not in self.evidence for name in names):
                again = Simulation(self.instance, self.property_names)
                again.walk(Dice(self.seed, first + int(walk)))
                for name in names:
                    self.evidence.setdefault(name, again.evidence[name])


def simulate(
    instance: Instance,
    property_names: tuple[str, ...],
    walks: int,
    seed: int,
    limits: Limits | None = None,
    progress: Callable[[Progress], None] = silent,
    *,
    workers: int = 1,
) -> Exploration:
    """The walks that isr_check.simulation makes, and what it answers, by `workers` threads.

    Up to MOST_COUNTED distinct states are counted, more are estimated. If all is decided, the round is still finished,
    so that the counts are then of more walks.
    """
    limits, start = limits or Limits(), time.monotonic()
    for slack in SLACKS:
        search = _NativeWalks(instance, property_names, seed, slack, workers)
        try:
            return _answer(search, walks, limits, start, progress)
        except Overflow:
            continue
        finally:
            search.team.close()
    raise AssertionError("with the last slack a simulation ends")


def _answer(
    search: _NativeWalks, walks: int, limits: Limits, start: float, progress: Callable[[Progress], None]
) -> Exploration:
    told = 0.0

    def stop() -> bool:
        nonlocal told
        elapsed = time.monotonic() - start
        if elapsed > PATIENCE:
            search.machine.improve()
        if elapsed > told:
            told = elapsed + TELL_EVERY
            progress(search.progress(elapsed))
        late = limits.max_seconds is not None and elapsed >= limits.max_seconds
        return late or limits.stop()

    last, size = 0, CHUNK
    while last < walks and not search.is_decided() and not search.cut:
        if limits.max_states is not None and search.distinct >= limits.max_states:
            break
        first, last = last, min(last + size, walks)
        search.round(first, last, stop)
        size = min(2 * size, LONGEST_ROUND)
    return search.exploration(time.monotonic() - start, enough=last == walks and not search.cut)
