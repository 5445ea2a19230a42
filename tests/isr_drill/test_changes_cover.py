"""The coarse model of reassignments and of a changing minimum keeps pace with Kafka's protocol as it was released.

Without this a record would be called safe because the model of a drill cannot do what the protocol can.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import cast

import attrs
import pytest
from tests.isr_drill.test_cover import HARMS, KIND, disk_is_emptied, never, only_if_leader_runs

from isr_check.reference import Evaluator, State
from isr_drill import changes, record_fate
from isr_drill.changes import BEFORE_3_8, PROTOCOLS, WITH_ELR, WITHOUT_ELR, Changes, changes_design
from isr_lang import Action, Design, Instance
from isr_lang.override import DefinitionFunction
from isr_protocol.designs.reassignment import completes as completes_with_all
from isr_protocol.designs.reassignment import completes_with_added, completes_with_added_or_all

ASKED = {
    "controller_starts_reassignment": "REASSIGN",
    "controller_reassigns_at_once": "REASSIGN",
    "controller_cancels_reassignment": "CANCEL",
    "controller_sets_minimum": "SET",
}
"""What people do in the protocol's model -> the happening that a runbook calls it."""
METADATA = (
    *("alive", "controller_leader", "controller_isr", "controller_elr", "last_known_leader", "fenced"),
    *("shutting_down", "clean_shutdown", "replicas", "adding", "removing", "minimum"),
)
BOUNDS = {
    **{"log": 1, "records": 1, "epochs": 8, "isr_changes": 12, "crashes": 1, "lossy_crashes": 1, "shutdowns": 1},
    **{"sessions_lost": 3, "reassignments": 2, "minimum_changes": 1, "replicas": 3, "spares": 1, "disks_replaced": 0},
}

REPLICAS = 3
DESCRIBED = 0.1
"""How often a drill begins anew at a step of a walk."""
RARE = (*HARMS, "controller_fences_leader", "controller_fences_last_leader", "leader_proposes_shrink")
RARELY = 0.1
"""How often a harm is chosen, beside any other step: a walk of harms alone has lost its record too soon."""


@attrs.frozen
class Pace:
    """The protocol's own model, and the coarse one that has to keep pace.

    Of a walk the coarse states are kept that have the same metadata and no more disks with the record. One of them has
    acknowledged it where the protocol has. A coarse model that is somewhere else altogether has lost the walk.
    """

    fine: Evaluator
    coarse: Evaluator

    @property
    def names(self) -> list[str]:
        return [v.name for v in Changes.variables()]

    def fine_values(self, state: State) -> dict[str, object]:
        return {v.name: x for v, x in zip(self.fine.instance.variables, state, strict=True)}

    def begins(self, state: State) -> State:
        """The coarse state of a healthy partition."""
        fine = self.fine_values(state)
        values = {
            **{n: fine.get(n, 0) for n in METADATA},
            **{"asleep": fine["alive"], "acked": False, "holders": 0, "wounds": 0, "least": fine["least"]},
            **{"strangers": 0, "phase": 0, "to_do": 0, "kinds": (0, 0), "targets": (0, 0)},
            **{"believers": fine["alive"], "first": fine["controller_isr"], "strays": 0},
        }
        return tuple(values[n] for n in self.names)

    def described(self, candidates: Iterable[State]) -> set[State]:
        """What a drill assumes that begins in these states. Left out are those of which it assumes what is not so
        (`Cover.described`)."""
        several = set[State]()
        for c in candidates:
            values = dict(zip(self.names, c, strict=True))
            alive, isr, elr, fenced, wounds, strangers = (
                int(str(values[n]))
                for n in ("alive", "controller_isr", "controller_elr", "fenced", "wounds", "strangers")
            )
            leader = 1 << int(str(values["controller_leader"])) >> 1
            strays = (1 << REPLICAS) - 1 & ~(alive | isr | elr)
            if not (wounds & (isr | elr) or strays & ~fenced or values["shutting_down"]):
                believers = leader if values["acked"] else alive | leader
                first = (isr | elr) & ~strangers
                values |= {"believers": believers, "first": first, "strays": strays, "wounds": 0}
                several.add(tuple(values[n] for n in self.names))
        return several

    def planned(self, coarse: State, name: str, parameters: Sequence[object]) -> State:
        """The same where the runbook is about to do this, and everybody may lose its session."""
        kind = HARMS.get(name) or ASKED.get(name) or "NOTHING"
        number = int(str(parameters[0])) if parameters else 0
        to_do = {"REASSIGN": number, "SET": (1 << number) - 1, "NOTHING": 0}.get(kind, 1 << number)
        values = dict(zip(self.names, coarse, strict=True))
        values |= {"kinds": (KIND[kind], 0), "to_do": to_do, "phase": 0, "asleep": values["alive"]}
        return tuple(values[n] for n in self.names)

    def steps(self, coarse: State, fine: Mapping[str, object]) -> Iterator[State]:
        """The coarse states one step further that have the metadata of the fine one."""
        for _, _, new in self.coarse.successors(coarse):
            values = dict(zip(self.names, new, strict=True))
            if all(values[n] == fine.get(n, 0) for n in METADATA):
                yield new

    def keeps(self, coarse: State, fine: Mapping[str, object]) -> bool:
        """Whether it has no more than the fine state has, once that has acknowledged the record."""
        values = dict(zip(self.names, coarse, strict=True))
        if not fine["acked"]:
            return True
        logs = cast("tuple[tuple[int, ...], ...]", fine["log"])
        holders = sum(1 << r for r, log in enumerate(logs) if log)
        return bool(values["acked"]) and not int(str(values["holders"])) & ~holders

    def is_lost(self, coarse: State) -> bool:
        return not self.coarse.test(self.coarse.instance.properties[0])(coarse)

    def after(self, candidates: Iterable[State], name: str, parameters: Sequence[object], new: State) -> set[State]:
        """The coarse states after a step of the protocol; none where the coarse model cannot keep pace."""
        fine, following = self.fine_values(new), set[State]()
        for c in candidates:
            before = self.planned(c, name, parameters)
            values = dict(zip(self.names, before, strict=True))
            same = all(values[n] == fine.get(n, 0) for n in METADATA)
            needs = name in HARMS or name in ASKED
            following |= {before} if same and not needs else set(self.steps(before, fine))
            if same and name in ASKED:
                following.add(before)
        settled = {self.planned(c, "", ()) for c in following}
        wider = {*settled}
        for c in settled:
            if not dict(zip(self.names, c, strict=True))["acked"] or not fine["acked"]:
                wider |= {n for n in self.steps(c, fine) if self.changes_record_only(c, n)}
        for c in list(wider):
            wider |= {n for n in self.steps(c, fine) if self.is_deletion(c, n)}
        return {c for c in wider if self.keeps(c, fine)}

    def changes_record_only(self, old: State, new: State) -> bool:
        """An acknowledgement."""
        before, after = (dict(zip(self.names, s, strict=True)) for s in (old, new))
        return not before["acked"] and bool(after["acked"])

    def is_deletion(self, old: State, new: State) -> bool:
        before, after = (dict(zip(self.names, s, strict=True)) for s in (old, new))
        return {n for n in self.names if before[n] != after[n]} == {"holders"}


def walks(pace: Pace, number: int, length: int, seed: int, counts: dict[str, int] | None = None) -> Iterator[str]:
    """Random walks of the protocol; the steps with which the coarse model does not keep pace.

    A walk ends where the coarse model may have lost the record: the drill says so of it by then.
    """
    chance, counts = random.Random(seed), {} if counts is None else counts
    for _ in range(number):
        _, state = chance.choice(pace.fine.initial_states())
        candidates = pace.after({pace.begins(state)}, "", (), state)
        for _ in range(length):
            by_action: dict[int, list[tuple[Sequence[object], State]]] = {}
            for a, parameters, new in pace.fine.successors(state):
                by_action.setdefault(a, []).append((parameters, new))
            if not by_action:
                break
            if chance.random() < DESCRIBED and (begun := pace.described(candidates)):
                candidates = begun
            actions = sorted(by_action)
            names = [pace.fine.instance.actions[a].name for a in actions]
            a = chance.choices(actions, [RARELY if n in RARE else 1.0 for n in names])[0]
            chosen, new = chance.choice(by_action[a])
            name = pace.fine.instance.actions[a].name
            following = pace.after(candidates, name, chosen, new)
            counts[name] = counts.get(name, 0) + 1
            if not following:
                yield f"{name}{tuple(chosen)} to {pace.fine_values(new)}, of {len(candidates)}"
                break
            if any(pace.is_lost(c) for c in following):
                counts["lost"] = counts.get("lost", 0) + 1
                break
            state, candidates = new, following


RULES: Mapping[str, DefinitionFunction] = {
    "3.3": completes_with_added,
    "3.8": completes_with_all,
    "4.3": completes_with_added_or_all,
}


@cache
def protocol(name: str, rule: str, **bounds: int) -> Evaluator:
    design = PROTOCOLS[name] if rule == "4.3" else changes.with_rule(PROTOCOLS[name], RULES[rule])
    return Evaluator(Instance(design.adding(disk_is_emptied), {**BOUNDS, **bounds}))


def coarse(name: str, design: Design | None = None) -> Evaluator:
    fate = design or changes_design(PROTOCOLS[name], restless=True)
    return Evaluator(Instance(fate, {"replicas": 3}))


@pytest.mark.explores
@pytest.mark.parametrize(
    ("name", "rule", "minimum"),
    [
        (WITH_ELR, "4.3", 2),
        (WITH_ELR, "3.8", 3),
        (WITH_ELR, "4.3", 1),
        (WITHOUT_ELR, "4.3", 2),
        (WITHOUT_ELR, "3.8", 1),
        (BEFORE_3_8, "3.3", 2),
    ],
)
def test_the_coarse_model_keeps_pace(name: str, rule: str, minimum: int) -> None:
    counts: dict[str, int] = {}
    assert list(walks(Pace(protocol(name, rule, min_insync=minimum), coarse(name)), 40, 80, minimum, counts)) == []
    assert counts["controller_accepts_and_completes"] > 2
    assert counts["controller_sets_minimum"] > 10


def with_guard(name: str, guard: Action) -> Design:
    """The coarse model in which an action asks for more than it should."""
    design = changes_design(PROTOCOLS[WITH_ELR], restless=True)
    planted = (record_fate.extended_action(a, guard) if a.name == name else a for a in design.actions)
    return attrs.evolve(design, actions=tuple(planted))


@pytest.mark.explores
@pytest.mark.parametrize(
    ("name", "guard", "step"),
    [
        ("isr_grows", only_if_leader_runs, "controller_accepts_alter_partition"),
        ("isr_grows_and_completes", never, "controller_accepts_and_completes"),
        ("controller_reassigns_at_once", never, "controller_reassigns_at_once"),
        ("controller_starts_reassignment", never, "controller_starts_reassignment"),
        ("controller_cancels_reassignment", never, "controller_cancels_reassignment"),
        ("minimum_is_set", never, "controller_sets_minimum"),
        ("record_is_acknowledged", never, ""),
    ],
)
def test_a_coarse_model_that_does_less_is_seen(name: str, guard: Action, step: str) -> None:
    pace = Pace(protocol(WITH_ELR, "4.3", min_insync=2, crashes=2), coarse(WITH_ELR, with_guard(name, guard)))
    assert any(line.startswith(step) for line in walks(pace, 300, 80, seed=5))
