"""The steps of given states: for each step the packed successor, and a label that says which instance of an action."""

from __future__ import annotations

import numpy as np

from isr_check.engine import Unsound
from isr_check.native.actions import ACTION, OVERFLOW, TRAITS, ActionWriter, parameter_range
from isr_check.native.assembly import Code, Int
from isr_check.native.buffers import Numbers, Words, Worker, address
from isr_check.native.expressions import Definitions, Env, Expressions
from isr_check.native.kernels import DECLARATIONS, Job, Kernels, Marks, Program, tables
from isr_check.native.layout import Layout
from isr_check.native.machine import Machine
from isr_check.native.values import as_number
from isr_check.reference import parameter_values
from isr_lang import FoldedAction, Instance

CHUNK = 1024
"""How many states one call of the kernel takes."""
MANY = 1 << 17
"""The number of states after which optimising the machine code is worth its time."""
LABELLED_ACTION = (*ACTION, "ptr noalias %labels")  # one label for each successor


class LabelledActionWriter(ActionWriter):
    """Writes an action that also stores each successor's label: the number of the instance, counted from `first`."""

    def __init__(self, shared: Definitions, name: str, action: FoldedAction, first: int) -> None:
        super().__init__(shared, name, action, 0, [])
        self.first = first
        self.code = Code(name, LABELLED_ACTION, "i64", "noinline")
        self.expressions = Expressions(shared, self.code)

    def _successor(self, count: str, env: Env) -> None:
        code = self.code
        number: Int = 0
        for name, type in self.action.parameters:
            low, high = parameter_range(self.shared, type)
            value = as_number(code, env.values[name], type)
            number = code.add(code.mul(number, high - low + 1), code.sub(value, low))
        code.store("%labels", code.load(count, 0), code.add(number, self.first))
        super()._successor(count, env)


class LabelledKernels(Kernels):
    """The kernels of a module that labels steps."""

    def labelled_successors(self, actions: int) -> str:
        """@successors(as an action without traits): append a state's successors and labels; returns their number."""
        parameters = [p.replace("noalias ", "").replace("readonly ", "") for p in LABELLED_ACTION if p != TRAITS]
        code = Code("successors", parameters, "i64", "noinline")
        code.effect("call void @unpack(ptr %every_words, ptr %every_cells)")
        total = code.slot(0)
        for i in range(actions):
            so_far = code.load(total, 0)
            out, labels = code.address("%out", code.mul(so_far, self.words)), code.address("%labels", so_far)
            n = code.value(
                f"call i64 @action{i}(ptr %every_cells, ptr %every_new, ptr %every_words, i64 1, ptr {out}, "
                f"ptr %refused, ptr %report, ptr null, i64 %wanted, ptr {labels})"
            )
            code.store(total, 0, code.add(so_far, n))
        code.effect(f"ret i64 {code.load(total, 0)}")
        return code.text()

    def steps(self) -> str:
        """RESULTS[i]: how many steps the state at START+i of SOURCE has.

        OUT gets the successors of all these states in order, and LABELS their labels.
        """
        code, job = self._kernel("steps")
        source, out, labels, results = (job(j) for j in (Job.SOURCE, Job.OUT, Job.LABELS, Job.RESULTS))
        start, total = job(Job.START), code.slot(0)
        with code.loop(start, job(Job.END)) as (i, _):
            words, so_far = self.visited.state(code, source, i), code.load(total, 0)
            n = code.value(
                f"call i64 @successors(ptr {job(Job.CELLS)}, ptr {job(Job.NEW)}, ptr {words}, i64 1, "
                f"ptr {code.element(out, code.raw('mul', so_far, self.words))}, ptr {job(Job.REFUSED)}, "
                f"ptr {job(Job.REPORT)}, i64 0, ptr {code.element(labels, so_far)})"
            )
            code.store(results, code.sub(i, start), n)
            code.store(total, 0, code.raw("add", so_far, n))
        code.effect("ret void")
        return code.text()


class Stepper:
    """The steps of states of an instance; labels number the instances of all actions in the order of the model."""

    def __init__(self, instance: Instance, layout: Layout) -> None:
        shared, first = Definitions(layout), 0
        actions: list[LabelledActionWriter] = []
        for i, action in enumerate(instance.actions):
            actions.append(LabelledActionWriter(shared, f"action{i}", action, first))
            first += sum(1 for _ in parameter_values(instance, action))
        self.most, self.words, self.states_asked = first, layout.words, 0
        kernels = LabelledKernels(layout, self.most, Marks(None, None), None)
        parts = [a.text() for a in actions]
        parts += [kernels.unpack(), kernels.labelled_successors(len(actions)), kernels.steps()]
        text = "\n".join([*tables(layout), *DECLARATIONS, *shared.texts, *parts])
        guards = max((len(a.guards) for a in instance.actions), default=0)
        self.machine = Machine(text, ("steps",))
        self.worker = Worker(Program(text, ("steps",), layout, self.most, guards, ()), 0, (0, 0))
        self._labels = np.zeros(CHUNK * self.most + 1, dtype=np.int64)
        self._out = np.zeros((CHUNK * self.most + 1) * self.words, dtype=np.uint64)

    def steps(self, states: Words) -> tuple[Numbers, Numbers, Words]:
        """The steps of states (one row each): the number of each state's, and the labels and targets of all in order.

        Raises Unsound if a successor has a value that does not fit the layout.
        """
        self.states_asked += len(states)
        if self.states_asked > MANY:
            self.machine.improve()
        none = np.zeros(0, dtype=np.int64)
        counts, labels = [none], [none]
        targets = [np.zeros((0, self.words), dtype=np.uint64)]
        for start in range(0, len(states), CHUNK):
            rows = np.ascontiguousarray(states[start : start + CHUNK])
            results = np.zeros(len(rows), dtype=np.int64)
            worker = self.worker
            worker.set([(Job.SOURCE, address(rows)), (Job.RESULTS, address(results))])
            worker.set([(Job.OUT, address(self._out)), (Job.LABELS, address(self._labels))])
            worker.run(self.machine.run["steps"], 0, len(rows), 0)
            if worker.report[OVERFLOW]:
                raise Unsound("a successor has a value outside the declared range of its variable")
            total = int(results.sum())
            counts.append(results)
            labels.append(self._labels[:total].copy())
            targets.append(self._out[: total * self.words].reshape(-1, self.words).copy())
        return np.concatenate(counts), np.concatenate(labels), np.concatenate(targets)
