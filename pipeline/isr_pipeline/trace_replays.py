"""Many traces at once: those of a dataset replayed on the broker's cores, and those of brokers validated.

The results are tables. Along a trace everything that the cores can do is compared with what the model allows, not only
the step that the trace takes. A trace on which they differ is stored again without the steps that the difference does
not need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, cast

import attrs
import pyarrow as pa

from isr_broker.designs import Design as Planted
from isr_broker.trace_reader import BadTrace, read_files
from isr_check.reference import Evaluator, State
from isr_conform.edge_cover import ModelGraph
from isr_lang import Instance
from isr_pipeline.histories.rows import keep, schema
from isr_pipeline.locations import Location
from isr_pipeline.trace_datasets import SUFFIX
from isr_replay.core_system import State as Cores
from isr_replay.environment import Environment
from isr_replay.replay import Kind
from isr_trace.itf import read_itf, write_itf
from isr_trace.replay import record
from isr_validate.validator import BUDGET, validate

REPLAYED: Final = schema(
    file=pa.string(),
    verdict=pa.string(),
    **dict.fromkeys(("length", "steps", "minimal_length"), pa.int64()),
    **dict.fromkeys(("kind", "action", "parameters", "variables", "minimal"), pa.string()),
)
"""The table of replays. `steps`: how many steps were replayed; `minimal`: the file of the reduced trace."""
ALIKE, DIFFERS, STOPPED, KNOWN_DIFFERENCE = "alike", "differs", "stopped", "explained"
"""The verdicts. STOPPED: the cores do not take a step of the model, after this trace. Cores that came another way to
the same state of the model may take it; `insync replay` tries all ways. KNOWN_DIFFERENCE: they do not, for a
known reason."""

Row = dict[str, object]


@attrs.frozen
class Outcome:
    """How the replay of a trace ended: the verdict, the number of steps, and what differed."""

    verdict: str
    steps: int
    kind: str = ""
    action: str = ""
    parameters: tuple[object, ...] = ()
    variables: tuple[str, ...] = ()


class CoresOnTrace:
    """Replays cores and model in lock-step along a path."""

    def __init__(self, instance: Instance, planted: Planted | None = None) -> None:
        self.world = Environment(instance, tuple(range(int(instance.constants["replicas"]))), False, planted)
        self.instance, self.packing = instance, self.world.packing
        self.graph = ModelGraph(instance, self.packing, frozenset(action.name for action in instance.actions))
        self.numbers = {named: n for n, named in enumerate(self.graph.labels.steps)}

    def follow(self, initial: State, labels: Sequence[int], *, lenient: bool = False) -> tuple[Outcome, list[int]]:
        """Replay these steps: the outcome, and the steps that were taken. If lenient, impossible steps are skipped."""
        model = self.packing.packed(initial)
        cores = [state for state in self.world.initial_states() if self.world.bits(state) == model]
        taken_labels: list[int] = []
        for label in (*labels, None):
            model_steps = self.graph.steps(model)
            if lenient and label is not None and label not in model_steps:
                continue
            onward: dict[Cores, None] = {}
            for state in cores:
                for step, successor in self.world.successors(state):
                    bits = self.world.bits(successor)
                    if model_steps.get(step) != bits:
                        return self._differs(len(taken_labels), step, bits, model_steps.get(step)), taken_labels
                    if step == label:
                        onward[successor] = None
            if label is None:
                break
            if not onward:
                why = any(self.world.known_difference(state, label) for state in cores)
                return self._stopped(len(taken_labels), label, KNOWN_DIFFERENCE if why else STOPPED), taken_labels
            model, cores = model_steps[label], list(onward)
            taken_labels.append(label)
        return Outcome(ALIKE, len(taken_labels)), taken_labels

    def _stopped(self, steps: int, label: int, verdict: str) -> Outcome:
        action, parameters = self.world.labels.name(label)
        return Outcome(verdict, steps, Kind.MISSING.value, action, parameters)

    def _differs(self, steps: int, label: int, cores: int, model: int | None) -> Outcome:
        action, parameters = self.world.labels.name(label)
        if model is None:
            return Outcome(DIFFERS, steps, Kind.UNEXPECTED.value, action, parameters)
        both = zip(self.instance.variables, self.packing.unpack(cores), self.packing.unpack(model), strict=True)
        differing = tuple(v.name for v, ours, theirs in both if ours != theirs)
        return Outcome(DIFFERS, steps, Kind.INCONSISTENT.value, action, parameters, differing)

    def least(self, initial: State, labels: list[int], outcome: Outcome) -> list[int]:
        """Drop steps, by delta debugging, that the same kind of difference in the same action does not need."""
        size = max(1, len(labels) // 2)
        while labels:
            for begin in range(0, len(labels), size):
                found, taken = self.follow(initial, labels[:begin] + labels[begin + size :], lenient=True)
                same = (found.verdict, found.kind, found.action) == (outcome.verdict, outcome.kind, outcome.action)
                if same and len(taken) < len(labels):
                    labels = taken
                    break
            else:
                if size == 1:
                    break
                size //= 2
        return labels


@attrs.frozen
class ReplayPart:
    """The traces in a part of a dataset, for a task: `instance` makes the model, `planted` names a bug of the cores."""

    instance: Callable[[], Instance]
    dataset: Location
    out: Location
    planted: Planted | None = None

    def __call__(self, part: str) -> dict[str, int]:
        """Replay the part and write its table and reduced traces; the number of traces by verdict."""
        instance = self.instance()
        on, evaluator = CoresOnTrace(instance, self.planted), Evaluator(instance)
        with (self.dataset / "traces" / part).fetched() as traces, self.out.output_folder() as out:
            rows = [self.row(part, path, out, on, evaluator) for path in sorted(traces.glob(f"*{SUFFIX}"))]
        columns = {name: [row[name] for row in rows] for name in REPLAYED.names}
        keep(self.out / "replayed" / f"{part}.parquet", columns, REPLAYED)
        verdicts = [str(row["verdict"]) for row in rows]
        return {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))}

    def row(self, part: str, path: Path, out: Path, on: CoresOnTrace, evaluator: Evaluator) -> Row:
        """What became of a trace. Where the cores differ, `out` gets it without the steps that this does not need."""
        trace = read_itf(path, on.instance.design.model_hash())
        start = tuple(trace.states[0][v.name] for v in on.instance.variables)
        labels = [
            on.numbers[step.action, tuple(cast("Sequence[int]", step.parameters.values()))] for step in trace.steps
        ]
        outcome, taken = on.follow(start, labels)
        file = f"traces/{part}/{path.name}"
        minimal, least = "", taken
        if outcome.verdict == DIFFERS:
            least = on.least(start, taken, outcome)
            initial = next(one for one, state in evaluator.initial_states() if tuple(state) == start)
            steps = [on.graph.labels.name(label) for label in least]
            minimal = f"minimal/{part}-{path.name}"
            write_itf(record(evaluator, initial, steps, verdict="SAMPLED"), out / minimal)
        return {
            "file": file,
            "verdict": outcome.verdict,
            "length": len(labels),
            "steps": outcome.steps,
            "minimal_length": len(least) if minimal else -1,
            "kind": outcome.kind,
            "action": outcome.action,
            "parameters": ", ".join(map(str, outcome.parameters)),
            "variables": ", ".join(outcome.variables),
            "minimal": minimal,
        }


def validate_folder(folder: str) -> Row:
    """One run's logs, a folder of NODE.LIFE.jsonl on this machine or in a store, against the model.

    Where it is rejected, the row says at which line, and how small a part of it still is rejected.
    """
    from isr_validate.reduction import reduce_trace, validator_at
    from isr_validate.trace_lines import Level

    place = Location.of(folder)
    folder_text = folder if place.here else str(place)  # which has no secrets
    none: Row = {
        "folder": folder_text,
        "life": "",
        "action": "",
        "why": "",
        "events": 0,
        "line": -1,
        "minimal_lines": -1,
    }
    try:
        names = [name for name in place.files() if name.endswith(".jsonl") and "/" not in name]
        if not names:
            raise BadTrace(f"there is no trace, NODE.LIFE.jsonl, in {folder_text}")
        lives = read_files((name, (place / name).read()) for name in names)
        validation = validate(lives, budget=BUDGET)
    except (BadTrace, OSError) as problem:
        return {**none, "verdict": "bad", "why": str(problem)}
    row = {**none, "events": validation.events}
    no = validation.rejected
    if no is None:
        return {**row, "verdict": "unknown" if validation.unknown else "accepted", "why": validation.unknown or ""}
    lines = reduce_trace(lives, no, validator_at(Level.FULL)).lines
    told = {"life": no.life, "line": no.line, "action": no.action, "why": no.why, "minimal_lines": lines}
    return {**row, **told, "verdict": "rejected"}
