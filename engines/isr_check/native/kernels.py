"""The LLVM module of one instance: the kernels that run over ranges of packed states.

Each kernel takes one argument, a *job*: an array of 64-bit numbers and addresses (`Job`), made in Python.

    initial   add the initial states
    expand    add the successors of a range of states to the visited set; stop early when there is no room
    check     test the properties of states on a range of states
    mark      for each of a range of states, collect the masks of the targets that it reaches in one step
    index     enter a range of distinct states into an empty table
    strike    mark the states of the visited set that are among a range of other states

With symmetry there are two more. The *representative* of a state is the state that stands for its orbit.

    rename    replace states by their representatives (with a reduction, too, which has representatives as well)
    orbits    count the states in the orbits of a range of states
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum, auto

import attrs

from isr_check.native.actions import (
    ACTION,
    DECISIONS,
    MOVES,
    TRAITS,
    ActionWriter,
    Check,
    checks,
    combinations,
)
from isr_check.native.assembly import METADATA, Code, Int, signed_value
from isr_check.native.expressions import Definitions
from isr_check.native.layout import Layout
from isr_check.native.merging import Merging
from isr_check.native.renaming import Renaming
from isr_check.native.visited import Visited
from isr_check.reduction import Reduction
from isr_check.symmetry import Symmetry
from isr_lang import Instance

BATCH = 256
"""How many successors are collected before they are looked up: so many that their cache misses overlap."""
TOGETHER = 64
"""How many states are expanded together, action by action: so many that to change the action costs little."""


class Job(IntEnum):
    """The places in a job. A kernel reads states from SOURCE and adds those that it finds to STATES.

    Kernels change `NEXT`, `START`, `SUM` and `MEETINGS`.
    """

    STATES = 0
    START = auto()
    END = auto()
    NEXT = auto()
    LIMIT = auto()
    TABLE = auto()
    MASK = auto()
    WANTED = auto()
    REFUSED = auto()
    TAKEN = auto()
    REPORT = auto()
    CELLS = auto()
    NEW = auto()
    OUT = auto()
    HASHES = auto()
    RESULTS = auto()
    TARGETS = auto()
    TARGET_MASKS = auto()
    SUM = auto()
    SOURCE = auto()
    LISTED = auto()
    LABELS = auto()
    REACHED = auto()
    SEED = auto()
    INSERT = auto()
    """The function to call in the place of @insert, or 0 (see compressed_layout.py)."""
    MEETINGS = auto()
    """How many states walks met, each counted once a walk."""


NUMBERS = frozenset({Job.START, Job.END, Job.NEXT, Job.LIMIT, Job.MASK, Job.WANTED, Job.SUM, Job.SEED, Job.MEETINGS})
"""The places that hold numbers; all others hold addresses."""


@attrs.frozen
class Program:
    """The text of a module and the sizes of the arrays that its kernels need."""

    text: str
    kernels: tuple[str, ...]
    layout: Layout
    most: int
    guards: int
    guard_base: tuple[int, ...]

    @property
    def words(self) -> int:
        return self.layout.words

    @property
    def cells(self) -> int:
        return len(self.layout.cells)


KERNELS = ("initial", "expand", "check", "mark", "index", "strike")


@attrs.frozen
class Model:
    """An instance and its checks as functions of a module, of which its kernels are made."""

    shared: Definitions
    actions: tuple[ActionWriter, ...]
    texts: tuple[str, ...]
    most: int
    guards: int
    guard_base: tuple[int, ...]

    def program(self, texts: Sequence[str], names: tuple[str, ...]) -> Program:
        """The module that has these functions and kernels besides."""
        layout = self.shared.layout
        text = "\n".join([*tables(layout), *DECLARATIONS, *self.shared.texts, *self.texts, *texts])
        first = combinations(self.shared, self.shared.instance.initial.parameters)
        return Program(text, names, layout, max(self.most, first), self.guards, self.guard_base)


def model(
    instance: Instance, layout: Layout, on_states: list[Check], on_steps: list[Check], marks: Marks, steps: list[Check]
) -> Model:
    """@first, an action @actionI each, @states and @steps; actions test `steps` on all that they may do."""
    shared = Definitions(layout)
    base: list[int] = []
    guards = 0
    actions: list[ActionWriter] = []
    for i, action in enumerate(instance.actions):
        base.append(guards)
        actions.append(ActionWriter(shared, f"action{i}", action, guards, steps, moves=marks.deadlock is not None))
        guards += len(action.guards)
    first = ActionWriter(shared, "first", instance.initial, 0, [])
    most = sum(combinations(shared, a.parameters) for a in instance.actions)
    texts = [a.text() for a in (*actions, first)]
    texts += [checks(shared, "states", on_states, "%cells", marks.type_ok), checks(shared, "steps", on_steps, "%new")]
    return Model(shared, tuple(actions), tuple(texts), most, guards, tuple(base))


def program(
    instance: Instance,
    layout: Layout,
    on_states: list[Check],
    on_steps: list[Check],
    marks: Marks,
    symmetry: Symmetry | None = None,
    reduction: Reduction | None = None,
) -> Program:
    """The module for an instance and these checks; the layout must have been made for the symmetry."""
    instance_model = model(instance, layout, on_states, on_steps, marks, on_steps)
    writer = Kernels(layout, instance_model.most, marks, symmetry, reduction)
    parts = [writer.unpack(), writer.successors(instance_model.actions), *writer.visited.texts()]
    parts += [writer.initial(), writer.expand(), writer.check(), writer.mark(), writer.index(), writer.strike()]
    names: tuple[str, ...] = KERNELS
    if reduction is not None:
        parts.append(Merging(layout, reduction).text())
    if symmetry is not None:
        parts += [*Renaming(layout, symmetry).texts(), writer.orbits(symmetry)]
        names += ("orbits",)
    if symmetry is not None or reduction is not None:
        parts.append(writer.rename())
        names += ("rename",)
    return instance_model.program(parts, names)


@attrs.frozen
class Marks:
    """The bits of the two built-in checks; None for a check that is not made."""

    type_ok: int | None
    deadlock: int | None


DECLARATIONS = (
    *METADATA,
    "declare i64 @llvm.ctpop.i64(i64)",
    "declare i64 @llvm.smin.i64(i64, i64)",
    "declare i64 @llvm.smax.i64(i64, i64)",
    "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
)


def tables(layout: Layout) -> list[str]:
    """Where each cell is, for cells chosen at run time."""
    size = max(1, len(layout.cells))
    lines: list[str] = []
    places = {"word": [c.word for c in layout.cells], "shift": [c.shift for c in layout.cells]}
    for name, values in places.items():
        inner = ", ".join(f"i64 {v}" for v in values or [0])
        lines.append(f"@{name} = private unnamed_addr constant [{size} x i64] [{inner}]")
    return lines


class Kernels:
    def __init__(
        self,
        layout: Layout,
        most: int,
        marks: Marks,
        symmetry: Symmetry | None,
        reduction: Reduction | None = None,
    ) -> None:
        self.layout, self.words, self.most, self.marks = layout, layout.words, most, marks
        self.symmetry, self.reduction = symmetry, reduction
        self.visited = Visited(layout.words)

    def unpack(self) -> str:
        """@unpack(words, cells)"""
        code = Code("unpack", ("ptr noalias readonly %words", "ptr noalias %cells"), attributes="alwaysinline")
        for i, cell in enumerate(self.layout.cells):
            bits = code.bits_and(code.shift_right(code.peek("%words", cell.word), cell.shift), cell.mask)
            code.store("%cells", i, code.add(bits, cell.low))
        code.effect("ret void")
        return code.text()

    def successors(self, actions: Sequence[ActionWriter]) -> str:
        """@successors(as an action without traits, %taken): append the successors of at most TOGETHER states.

        Those of the first action come first, state by state. It returns how many they are.
        """
        parameters = [p.replace("noalias ", "").replace("readonly ", "") for p in ACTION if p != TRAITS]
        code = Code("successors", (*parameters, "ptr %taken"), "i64", "noinline")
        traits, cells = code.space(TOGETHER), len(self.layout.cells)
        stepping = any(a.steps or a.traits & ~MOVES for a in actions)

        def of(name: str, state: str, size: int) -> str:
            return code.element(f"%every_{name}", code.raw("mul", state, size))

        with code.loop(0, "%states") as (state, _):
            code.store(traits, state, 0)
            for name in ("cells", "new") if stepping else ("cells",):
                code.effect(f"call void @unpack(ptr {of('words', state, self.words)}, ptr {of(name, state, cells)})")
        total = code.slot(0)
        for i in range(len(actions)):
            so_far = code.load(total, 0)
            out = code.address("%out", code.mul(so_far, self.words))
            n = code.value(
                f"call i64 @action{i}(ptr %every_cells, ptr %every_new, ptr %every_words, i64 %states, ptr {out}, "
                f"ptr %refused, ptr %report, ptr {traits}, i64 %wanted)"
            )
            code.increase("%taken", i, n)
            code.store(total, 0, code.add(so_far, n))
        with code.loop(0, "%states") as (state, _):
            trait = code.load(traits, state)
            if stepping:
                mask, at = code.bits_and("%wanted", trait), of("cells", state, cells)
                with code.when(code.truth(mask)):
                    found = code.value(f"call i64 @steps(ptr {at}, ptr {at}, i64 {mask})")
                    code.include("%report", DECISIONS, found)
            if self.marks.deadlock is not None:
                stuck = code.equal(code.bits_and(trait, signed_value(MOVES)), 0)
                code.include("%report", DECISIONS, code.select(stuck, 1 << self.marks.deadlock, 0))
        code.effect(f"ret i64 {code.load(total, 0)}")
        return code.text()

    # kernels

    def _kernel(self, name: str) -> tuple[Code, Callable[[Job], str]]:
        code = Code(name, ("ptr %job",), inner=False)

        def field(place: Job) -> str:
            number = code.load("%job", int(place))
            return number if place in NUMBERS else code.value(f"inttoptr i64 {number} to ptr")

        return code, field

    def _insert_call(self, code: Code, job: Callable[[Job], str], n: Int, free: str) -> None:
        out, hashes, table, states = (job(j) for j in (Job.OUT, Job.HASHES, Job.TABLE, Job.STATES))
        self._rename(code, out, n)
        position, insert, mask = code.load(free, 0), job(Job.INSERT), job(Job.MASK)
        arguments = f"ptr {out}, i64 {n}, ptr {hashes}, ptr {table}, i64 {mask}, ptr {states}, i64 {position}"

        def elsewhere() -> None:
            code.store(free, 0, code.value(f"call i64 {insert}({arguments})"))

        with code.when(code.value(f"icmp eq ptr {insert}, null"), elsewhere):
            code.store(free, 0, code.value(f"call i64 @insert({arguments})"))

    def _rename(self, code: Code, out: str, n: Int) -> None:
        if self.symmetry is not None or self.reduction is not None:
            with code.loop(0, n) as (k, _):
                self._represent(code, self.visited.state(code, out, k))

    def _represent(self, code: Code, words: str) -> None:
        if self.reduction is not None:
            code.effect(f"call void @merged(ptr {words})")
        if self.symmetry is not None:
            code.effect(f"call i64 @representative(ptr {words})")

    def initial(self) -> str:
        """Add the initial states; the words at START of STATES, from which they are made, may have any value."""
        code, job = self._kernel("initial")
        cells, new, out = job(Job.CELLS), job(Job.NEW), job(Job.OUT)
        words = self.visited.state(code, job(Job.STATES), job(Job.START))
        code.effect(f"call void @unpack(ptr {words}, ptr {cells})")
        n = code.value(f"call i64 @first(ptr {cells}, ptr {new}, ptr {words}, i64 1, ptr {out}, "
                       f"ptr {job(Job.REFUSED)}, ptr {job(Job.REPORT)}, ptr null, i64 0)")  # fmt: skip
        free = code.slot(job(Job.NEXT))
        self._insert_call(code, job, n, free)
        code.store("%job", Job.NEXT, code.load(free, 0))
        code.effect("ret void")
        return code.text()

    def _successors_call(self, code: Code, job: Callable[[Job], str], words: str, states: Int, out: str) -> str:
        return code.value(
            f"call i64 @successors(ptr {job(Job.CELLS)}, ptr {job(Job.NEW)}, ptr {words}, i64 {states}, ptr {out}, "
            f"ptr {job(Job.REFUSED)}, ptr {job(Job.REPORT)}, i64 {job(Job.WANTED)}, ptr {job(Job.TAKEN)})"
        )

    def expand(self) -> str:
        code, job = self._kernel("expand")
        free, s, n = code.slot(job(Job.NEXT)), code.slot(job(Job.START)), code.slot(0)
        limit, end = job(Job.LIMIT), job(Job.END)
        states, out = job(Job.SOURCE), job(Job.OUT)
        code.jump("head")
        code.join("head")
        position = code.load(s, 0)
        code.split(code.compare("slt", position, end), "body", "finish")
        code.join("body")
        room = code.raw("sub", limit, code.raw("add", code.load(free, 0), code.load(n, 0)))
        code.split(code.compare("sgt", self.most, room), "squeeze", "go")
        code.join("squeeze")
        self._insert_call(code, job, code.load(n, 0), free)
        code.store(n, 0, 0)
        least = code.raw("add", code.load(free, 0), self.most)
        code.split(code.compare("sgt", least, limit), "finish", "go")
        code.join("go")
        so_far = code.load(n, 0)
        room = code.raw("sub", limit, code.raw("add", code.load(free, 0), so_far))
        fit = code.raw("udiv", room, max(1, self.most))
        many = code.least(code.least(TOGETHER, fit), code.raw("sub", end, position))
        words = code.element(states, code.raw("mul", position, self.words))
        begin = code.raw("mul", so_far, self.words)
        k = self._successors_call(code, job, words, many, code.element(out, begin))
        total = code.raw("add", so_far, k)
        code.store(n, 0, total)
        code.store(s, 0, code.raw("add", position, many))
        code.split(code.compare("sge", total, BATCH), "flush", "head")
        code.join("flush")
        self._insert_call(code, job, total, free)
        code.store(n, 0, 0)
        code.jump("head")
        code.join("finish")
        self._insert_call(code, job, code.load(n, 0), free)
        code.store("%job", Job.START, code.load(s, 0))
        code.store("%job", Job.NEXT, code.load(free, 0))
        code.effect("ret void")
        return code.text()

    def check(self) -> str:
        """REPORT[DECISIONS] collects the bits of the checks that a state decides; RESULTS may get each state's."""
        code, job = self._kernel("check")
        states, cells, report, results = (job(j) for j in (Job.SOURCE, Job.CELLS, Job.REPORT, Job.RESULTS))
        start, wanted = job(Job.START), job(Job.WANTED)
        decided_bits = code.slot(0)
        with code.loop(start, job(Job.END)) as (s, _):
            code.effect(f"call void @unpack(ptr {self.visited.state(code, states, s)}, ptr {cells})")
            bits = code.value(f"call i64 @states(ptr {cells}, ptr {cells}, i64 {wanted})")
            code.include(decided_bits, 0, bits)
            with code.when(code.value(f"icmp ne ptr {results}, null")):
                code.store(results, code.sub(s, start), bits)
        code.include(report, DECISIONS, code.load(decided_bits, 0))
        code.effect("ret void")
        return code.text()

    def mark(self) -> str:
        """RESULTS[i]: the joined masks of the targets one step from state START+i, and the checks its steps decide."""
        code, job = self._kernel("mark")
        states, out, report, results = (job(j) for j in (Job.SOURCE, Job.OUT, Job.REPORT, Job.RESULTS))
        table, mask, targets, masks = (job(j) for j in (Job.TABLE, Job.MASK, Job.TARGETS, Job.TARGET_MASKS))
        start, bits = job(Job.START), code.slot(0)
        with code.loop(start, job(Job.END)) as (s, _):
            code.store(report, DECISIONS, 0)
            n = self._successors_call(code, job, self.visited.state(code, states, s), 1, out)
            code.store(bits, 0, code.load(report, DECISIONS))
            self._rename(code, out, n)
            with code.loop(0, n) as (k, _):
                at = self.visited.state(code, out, k)
                position = code.value(f"call i64 @find(ptr {at}, ptr {table}, i64 {mask}, ptr {targets})")
                code.include(bits, 0, code.load(masks, position))
            code.store(results, code.sub(s, start), code.load(bits, 0))
        code.effect("ret void")
        return code.text()

    def index(self) -> str:
        code, job = self._kernel("index")
        states, hashes, table, mask = (job(j) for j in (Job.STATES, Job.HASHES, Job.TABLE, Job.MASK))
        start, end = job(Job.START), job(Job.END)
        batches = code.raw("udiv", code.raw("add", code.raw("sub", end, start), BATCH - 1), BATCH)
        with code.loop(0, batches) as (i, _):
            begin = code.raw("add", start, code.raw("mul", i, BATCH))
            until = code.least(code.raw("add", begin, BATCH), end)
            arguments = f"ptr {hashes}, ptr {table}, i64 {mask}"
            code.effect(f"call void @enter(ptr {states}, i64 {begin}, i64 {until}, {arguments})")
        code.effect("ret void")
        return code.text()

    def strike(self) -> str:
        """RESULTS, a byte per position of STATES, becomes 1 where the state is also in START..END of SOURCE."""
        code, job = self._kernel("strike")
        source, hashes, table, mask, states, marks = (
            job(j) for j in (Job.SOURCE, Job.HASHES, Job.TABLE, Job.MASK, Job.STATES, Job.RESULTS)
        )
        start, end = job(Job.START), job(Job.END)
        batches = code.raw("udiv", code.raw("add", code.raw("sub", end, start), BATCH - 1), BATCH)
        with code.loop(0, batches) as (i, _):
            begin = code.raw("add", start, code.raw("mul", i, BATCH))
            until = code.least(code.raw("add", begin, BATCH), end)
            arguments = f"ptr {hashes}, ptr {table}, i64 {mask}, ptr {states}, ptr {marks}"
            code.effect(f"call void @strike_out(ptr {source}, i64 {begin}, i64 {until}, {arguments})")
        code.effect("ret void")
        return code.text()

    def rename(self) -> str:
        """Replace the states at START..END of OUT by their representatives."""
        code, job = self._kernel("rename")
        out = job(Job.OUT)
        with code.loop(job(Job.START), job(Job.END)) as (k, _):
            self._represent(code, self.visited.state(code, out, k))
        code.effect("ret void")
        return code.text()

    def orbits(self, symmetry: Symmetry) -> str:
        """Add to SUM the number of states in the orbits of the states START..END."""
        code, job = self._kernel("orbits")
        states, out = job(Job.SOURCE), job(Job.OUT)
        total = code.slot(job(Job.SUM))
        with code.loop(job(Job.START), job(Job.END)) as (s, _):
            state = self.visited.state(code, states, s)
            for w in range(self.words):
                code.store(out, w, code.load(state, w))
            keeping = code.value(f"call i64 @representative(ptr {out})")
            size = code.raw("udiv", symmetry.order, keeping)
            code.store(total, 0, code.raw("add", code.load(total, 0), size))
        code.store("%job", Job.SUM, code.load(total, 0))
        code.effect("ret void")
        return code.text()
