"""Every state that a design can reach, by the reference evaluator: whether a variant of it gets anywhere else."""

from collections.abc import Mapping

from isr_check.reference import Evaluator, State
from isr_lang import Design, Instance, Value


def reached(design: Design, constants: Mapping[str, Value], without: tuple[str, ...]) -> set[State]:
    """The reachable states, less the variables whose names begin with one of `without`."""
    instance = Instance(design, constants)
    kept = [i for i, v in enumerate(instance.variables) if not v.name.startswith(without)]
    evaluator = Evaluator(instance)
    seen = {state for _, state in evaluator.initial_states()}
    todo = list(seen)
    while todo:
        new = {state for _, _, state in evaluator.successors(todo.pop())} - seen
        seen |= new
        todo += new
    return {tuple(state[i] for i in kept) for state in seen}
