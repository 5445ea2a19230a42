"""An explanation names the conjunct that fails, the witness and the values, and which steps it took."""

import json
from collections.abc import Iterator

import attrs
import pytest
from tests.support.models import copied_log, thermostat, two_phase_commit
from tests.support.traces import evaluator, violation

from isr_check.reference import Evaluator, State
from isr_lang import Design, Node
from isr_trace.explain import Explanation, as_json, explain, explanation_lines
from isr_trace.reasons import Explainer, Reason
from isr_trace.replay import record
from isr_trace.show import plain_text
from isr_trace.trace import TraceError


def explained(design: Design, name: str) -> Explanation:
    return explain(violation(design, name), evaluator(design))


def leaves(design: Design, name: str) -> list[str]:
    """The deciding parts as `text: values`."""
    return [
        f"{r.text}: {', '.join(f'{k} = {v}' for k, v in r.values)}" for r in explained(design, name).reason.leaves()
    ]


def test_the_witness_of_a_universal_promise_is_named_with_its_value() -> None:
    reason = explained(thermostat.DESIGN, "never-hot").reason
    assert (reason.holds, reason.note) == (False, "for room = room1")
    assert [r.binding for r in reason.because] == ["room = room1"]
    assert leaves(thermostat.DESIGN, "never-hot") == ["warmth[room1] < 3: warmth[room1] = 3"]


def test_a_planted_witness_is_found_wherever_it_is() -> None:
    runs = evaluator(thermostat.DESIGN)
    for room in range(3):
        trace = record(runs, (), [("heat", (room,))] * 3, property_name="never-hot", verdict="VIOLATED")
        assert explain(trace, runs).reason.note == f"for room = room{room + 1}"


def test_an_alternative_fails_in_all_its_parts() -> None:
    assert leaves(thermostat.DESIGN, "someone-sees-to-it") == [
        "occupied.has(room1): occupied = {room1}",
        "warmth[room1] == 2: warmth[room1] = 0",
        *(f"warmth[room1] < warmth[room{i}]: {values}" for i, values in WARMER),
    ]


WARMER = [
    (1, "warmth[room1] = 0"),
    (2, "warmth[room1] = 0, warmth[room2] = 0"),
    (3, "warmth[room1] = 0, warmth[room3] = 0"),
]


def test_of_a_conjunction_only_what_fails_is_told() -> None:
    (leaf,) = leaves(thermostat.DESIGN, "at-most-one-is-warm")
    assert leaf.startswith("count(")
    assert leaf.endswith(" = 2")


def test_a_step_is_explained_with_both_its_states() -> None:
    told = leaves(thermostat.DESIGN, "nobody-enters-a-cold-room")
    assert "new.occupied.has(room1): new.occupied = {room1}" in told
    assert "old.warmth[room1] != 0: old.warmth[room1] = 0" in told
    assert leaves(thermostat.DESIGN, "comfort-stays") == [
        "old.warmth[room1] == 2: ",
        "new.warmth[room1] == 2: new.warmth[room1] = 3",
    ]


def test_a_definition_is_opened_with_its_sentence_and_its_line() -> None:
    def all_of(reason: Reason) -> Iterator[Reason]:
        yield reason
        for part in reason.because:
            yield from all_of(part)

    reasons = list(all_of(explained(thermostat.DESIGN, "comfort-stays").reason))
    opened = [r for r in reasons if r.doc]
    assert {r.doc for r in opened} == {"Two degrees are comfortable."}
    assert [r.text for r in opened] == ["comfortable(room1)", "comfortable'(room1)"]
    assert all(r.where is not None and r.where.file.endswith("thermostat.py") for r in opened)


def test_a_witness_of_reachability_is_explained_by_why_it_holds() -> None:
    reason = explained(thermostat.DESIGN, "everyone-is-comfortable").reason
    assert (reason.holds, reason.note) == (True, "for a = room1, b = room2 (and 1 more of 3)")


def test_out_of_range_and_deadlock_are_explained_without_a_property() -> None:
    runs = evaluator(thermostat.DESIGN, {"rooms": 1})
    steps: list[tuple[str, tuple[int]]] = [("heat", (0,))] * 3 + [("enter", (0,))]
    stuck = record(runs, (), steps, property_name="deadlock", verdict="VIOLATED")
    assert explain(stuck, runs).reason.note == "no action is possible in this state"


@pytest.mark.long
@pytest.mark.parametrize(
    "design", [thermostat.DESIGN, copied_log.UNCLEAN, two_phase_commit.DESIGN], ids=lambda d: d.name
)
def test_every_part_of_every_explanation_has_the_truth_it_claims(design: Design) -> None:
    class Checked(Explainer):
        def why(self, node: Node, *, holds: bool, binding: str = "") -> Reason:
            assert bool(self.value(node)) is holds, f"{self.text(node)} in {self.old} and {self.new}"
            return super().why(node, holds=holds, binding=binding)

    runs = evaluator(design)
    for old, new in some_steps(runs, 60):
        for p in runs.instance.properties:
            one = p.kind in ("always", "sometimes")
            holds = runs.holds(p, old) if one else runs.holds(p, old, new)
            explainer = Checked(runs, old, None) if one else Checked(runs, old, new, "old.")
            assert explainer.why(p.condition, holds=holds).holds in (True, False)


def some_steps(runs: Evaluator, most: int) -> Iterator[tuple[State, State]]:
    """Steps spread over the reachable states."""
    seen = {s for _, s in runs.initial_states()}
    queue = list(seen)
    for n, state in enumerate(queue):
        for _, _, successor in runs.successors(state):
            if successor not in seen and len(queue) < 10 * most:
                seen.add(successor)
                queue.append(successor)
            if n % 10 == 0:
                yield state, successor


# Which steps it took


def test_a_step_is_needed_enabling_or_removable() -> None:
    runs = evaluator(copied_log.UNCLEAN, {"replicas": 3})
    shortest = violation(copied_log.UNCLEAN, constants={"replicas": 3})
    roles = [(s.role, s.enables) for s in explain(shortest, runs).steps]
    assert roles[0] == ("enabling", (2, 3, 4)), "without the write there is nothing to copy, lag or acknowledge"
    assert roles[3] == ("needed", ()), "without the acknowledgement nothing is promised"
    assert roles[4] == ("enabling", (6,)), "while the leader is up nobody else is elected"
    moves = [(s.action, tuple(s.parameters.values())) for s in shortest.steps]
    detour = [("replica_crashes", (2,)), ("replica_restarts", (2,)), *moves]
    initial = tuple(shortest.initial.values())
    longer = record(runs, initial, detour, property_name="acked-survives", verdict="VIOLATED")
    first, second, *_ = explain(longer, runs).steps
    assert (first.role, first.enables) == ("removable", (2,)), "the rest happens without the crash"
    assert (second.role, second.enables) == ("enabling", (8,)), "who is down is not elected"


def test_the_explanation_is_text_and_json() -> None:
    explanation = explained(copied_log.UNCLEAN, "acked-survives")
    text = plain_text(explanation_lines(explanation))
    for said in (
        "acked-survives fails after T5",
        "Whoever leads has every record that was acknowledged.",
        "copied_log.py:",
        "r = r2, m = 0: ",
        "acked.has(0)  holds  acked = {0}",
        "holds(r2, 0)  fails",
        "T3   high_watermark_advances(r=r1)",
    ):
        assert said in text
    written = json.loads(json.dumps(as_json(explanation)))
    assert written["reason"]["note"] == "for r = r2, m = 0"
    assert [s["role"] for s in written["steps"]] == [s.role for s in explanation.steps]


# What cannot be explained


def test_a_trace_that_does_not_end_in_a_violation_is_refused() -> None:
    runs = evaluator(copied_log.UNCLEAN)
    passing = record(runs, (0,), [("leader_appends", (0,))], property_name="acked-survives")
    with pytest.raises(TraceError, match="does not end in a state that decides acked-survives"):
        explain(passing, runs)
    unknown = record(runs, (0,), [], property_name="no-such")
    with pytest.raises(TraceError, match="no-such does not exist in unclean"):
        explain(unknown, runs)


def test_a_trace_that_the_model_does_not_follow_is_refused() -> None:
    trace, runs = violation(copied_log.UNCLEAN), evaluator(copied_log.UNCLEAN)
    skipping = attrs.evolve(trace, steps=trace.steps[1:], states=trace.states[1:])
    with pytest.raises(TraceError, match=r"step 1, leader_shrinks_isr\(r=r1, f=r2\), is not possible there"):
        explain(skipping, runs)
    lying = attrs.evolve(trace, states=(*trace.states[:-1], {**trace.states[-1], "acked": 0}))
    with pytest.raises(TraceError, match="after step 5 the trace has another 'acked' than unclean"):
        explain(lying, runs)
