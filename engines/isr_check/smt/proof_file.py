"""A proof as one file: every query that was refuted, as SMT-LIB text, and a manifest of what they prove together.

    keeping = Keeping(induction, Strategy(induction, hints).decide, folder)
    decided = prove(induction, obligations, seconds, workers, first=keeping)
    store(file, keeping, decided, wanted)

What the manifest says, and how it is checked without any of this code, is in `isr_check.certify`. It is compared with
the model in `certificate`.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import cast

import attrs

from isr_check.engine import TYPE_OK
from isr_check.smt.induction import GOAL, INITIAL, Induction, NamedTerm, Obligation, Query
from isr_check.smt.obligations import Attempt, Decision, Proved
from isr_check.smt.smtlib import formula, query_text, smaller
from isr_check.smt.solver import Answer, Proof, ask
from isr_check.smt.strategy import MARK, SOME
from isr_check.smt.terms.design_terms import Choice
from isr_check.smt.terms.logic import Term, Truth, all_of, conjuncts, identity, term
from isr_lang import Property

SCHEMA = "insync/proof/1"
MANIFEST = "manifest.json"
START = INITIAL
"""The key of the initial condition among the manifest's steps: the kind of the obligations at the start."""
UNCHANGED = {
    START: "it is so by evaluation",
    "preserved": "nothing that it speaks of changes",
    "implies": "it is a conjunct, or nothing that it speaks of changes",
}
"""Why an obligation holds without a query."""

KINDS = {"bounds": "bound", "defined": "definition", MARK: "mark", SOME: "naming"}
"""Name of an assertion -> its kind, for assertions whose name says what they are."""

Json = dict[str, object]


class NotStored(ValueError):
    """The proof is not complete, so it cannot be stored: one sentence says why."""


class Keeping:
    """A way to prove (obligations.Attempt) that writes every proof of `attempt` to a folder, from any process."""

    def __init__(self, induction: Induction, attempt: Attempt, folder: Path) -> None:
        self.induction, self.attempt, self.folder = induction, attempt, folder
        self._hypothesis_keys = {(name, identity(x)) for name, x in self.induction.hypotheses}

    def __call__(self, obligation: Obligation, query: Query, seconds: float, core: bool) -> Answer:
        answer = self.attempt(obligation, query, seconds, core)
        if answer.status == "unsat" and answer.proofs:
            self.keep(obligation, query, answer.proofs)
        return answer

    def keep(self, obligation: Obligation, query: Query, proofs: Sequence[Proof]) -> None:
        """Write the proof of one query: a file for each part of its goal, and a list of them."""
        parts: list[Json] = []
        for number, proof in enumerate(proofs):
            small_proof, goal_needed = smaller(proof)
            assertions = list(self._kinds(small_proof))
            text = query_text(assertions)
            name = f"{_stem(obligation, query)}.{number}.smt2"
            _write(self.folder / name, text)
            parts.append(
                {
                    "file": name,
                    "sha256": hashlib.sha256(text.encode()).hexdigest(),
                    "assertions": [f"{kind} {name}".rstrip() for kind, name, _ in assertions],
                    "goal_needed": goal_needed,
                    "named_by": list(proof.named_by),
                    "seconds": round(proof.seconds, 3),
                    "seconds_again": round(small_proof.seconds, 3),
                    "z3": dict(small_proof.way),
                }
            )
        _write(self.folder / f"{_stem(obligation, query)}.json", json.dumps(parts))

    def stored_parts(self, obligation: Obligation, query: Query) -> list[Json] | None:
        """The list of files that `keep` has written for a query; None if there is none."""
        path = self.folder / f"{_stem(obligation, query)}.json"
        return cast("list[Json]", json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None

    def _kinds(self, proof: Proof) -> Iterator[tuple[str, str, Term]]:
        """Each assertion with its kind and name; certify checks each kind in its own way."""
        for name, x in proof.assertions:
            if name == GOAL:
                yield GOAL, "", proof.goal
            elif name in KINDS:
                yield KINDS[name], "", x
            elif name.endswith("'"):
                yield "after", name.rstrip("'"), x
            else:
                yield "holds" if (name, identity(x)) in self._hypothesis_keys else "guard", _line(name), x


def store(
    file: Path,
    keeping: Keeping,
    decisions: Sequence[Decision],
    properties: Sequence[Property] = (),
    seconds: float = 60.0,
    left_out: Sequence[str] = (),
) -> Json:
    """Write the proof into one file and return its manifest; NotStored unless every obligation is proved.

    `left_out`: the actions that the design of this name has, and the one that is proved has not.
    """
    induction = keeping.induction
    open_ones = [o.name for o, r in decisions if not isinstance(r, Proved)]
    if open_ones:
        raise NotStored(f"{len(open_ones)} of {len(decisions)} obligations are not proved, among them {open_ones[0]}")
    asked = [(o.kind, o.conjunct, o.action) for o, _ in decisions]
    if sorted(asked, key=str) != sorted(_expected(induction, properties), key=str):
        raise NotStored("a proof is stored of all obligations, not of some conjuncts or actions only")
    entries = [_obligation_entry(keeping, o, r.seconds, seconds) for o, r in decisions if isinstance(r, Proved)]
    steps = manifest_steps(induction, [q for o, _ in decisions if o.kind == START for q in o.queries])
    manifest: Json = {
        **manifest_head(induction, properties),
        "without": list(left_out),
        "steps": steps,
        "obligations": entries,
    }
    files = sorted(f for o in entries for q in _of(o, "queries") for f in (str(p["file"]) for p in _of(q, "parts")))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
        for name in files:
            _add(archive, name, (keeping.folder / name).read_text(encoding="utf-8"))
    return manifest


def _of(value: Json, name: str) -> list[Json]:
    return cast("list[Json]", value.get(name, []))


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    """Add a file with a fixed date, so that equal proofs become equal zip files."""
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, text)


def _obligation_entry(keeping: Keeping, obligation: Obligation, proof_seconds: float, seconds: float) -> Json:
    """One obligation for the manifest; queries that another way has proved are proved again and written down."""
    queries: list[Json] = []
    for query in obligation.queries:
        parts = keeping.stored_parts(obligation, query)
        if parts is None:
            keeping.keep(obligation, query, list(_otherwise(keeping.induction, obligation, query, seconds)))
            parts = keeping.stored_parts(obligation, query)
        queries.append({"choice": query.choice.text(), "parts": parts})
    entry: Json = {"kind": obligation.kind, "conjunct": obligation.conjunct, "action": obligation.action}
    asked = {q["choice"] for q in queries}
    unchanged = [c for c in choices_of(keeping.induction, obligation) if c not in asked]
    if unchanged:
        entry["unchanged"] = {"choices": unchanged, "reason": UNCHANGED[obligation.kind]}
    return entry | {"seconds": round(proof_seconds, 3), "queries": queries}


def _otherwise(induction: Induction, obligation: Obligation, query: Query, seconds: float) -> Iterator[Proof]:
    """Prove each part of a query again, from all hypotheses; NotStored if that fails."""
    for goal in conjuncts(query.goal):
        assertions = induction.assertions(attrs.evolve(query, goal=goal))
        answer = ask(assertions, seconds)
        if answer.status != "unsat":
            raise NotStored(f"{obligation.name} was proved, but not again from the query that would be stored")
        yield Proof(goal, tuple(assertions), {}, answer.seconds)


def choices_of(induction: Induction, obligation: Obligation) -> list[str]:
    """The choices of parameters for which an obligation has to hold."""
    if obligation.action is not None:
        action = next(a for a in induction.design.actions if a.name == obligation.action)
        return [choice.text() for choice, _, _ in induction.steps(action)]
    if obligation.kind == START:
        return [c.text() for c in _initial(induction)]
    return [""]


def manifest_head(induction: Induction, properties: Sequence[Property]) -> Json:
    """The manifest without steps and obligations."""
    design, t = induction.design, induction.translation
    holds: dict[str, list[str]] = {}
    for name, x in induction.hypotheses:
        holds.setdefault(name, []).append(formula(x))
    return {
        "schema": SCHEMA,
        "design": design.name,
        "model_hash": design.model_hash(),
        "constants": {k: v for k, v in t.settings.items() if v is not None},
        "free": sorted(k for k, v in t.settings.items() if v is None),
        "any_number": [str(s) for s in induction.goals.sorts],
        "solvers": {"z3": metadata.version("z3-solver")},
        "conjuncts": [{"name": TYPE_OK, "text": "every variable has a value of its type"}]
        + [{"name": c.name, "text": c.doc} for c in induction.conjuncts],
        "wanted": [{"name": p.name, "kind": p.kind, "text": p.doc} for p in properties],
        "bounds": [formula(x) for x in _parts(t.assumptions)],
        "holds": holds,
    }


def manifest_steps(induction: Induction, starts: Sequence[Query]) -> Json:
    """For the initial condition and every action, the choices of parameters, each with its guards."""
    t = induction.translation
    first = {q.choice.text(): q.hypotheses for q in starts}
    steps: Json = {START: [_step(c, first.get(c, ())) for c in map(Choice.text, _initial(induction))]}
    for a in induction.design.actions:
        possible = {choice.text(): guards for choice, guards, _ in induction.steps(a)}
        every = map(Choice.text, t.parameters(a, induction.apart))
        steps[a.name] = [_step(c, possible[c]) if c in possible else {"choice": c, "impossible": True} for c in every]
    return steps


def _step(choice: str, guards: Sequence[NamedTerm]) -> Json:
    return {"choice": choice, "guards": [[_line(name), formula(x)] for name, x in guards]}


def _initial(induction: Induction) -> list[Choice]:
    return induction.translation.parameters(induction.design.initial, induction.apart)


def _expected(induction: Induction, properties: Sequence[Property]) -> Iterator[tuple[str, str, str | None]]:
    """Kind, conjunct and action of every obligation."""
    actions = [a.name for a in induction.design.actions]
    for name in (TYPE_OK, *(c.name for c in induction.conjuncts)):
        yield START, name, None
        yield from (("preserved", name, a) for a in actions)
    for p in properties:
        if p.kind == "always":
            yield "implies", p.name, None
        elif p.kind == "step":
            yield from (("implies", p.name, a) for a in actions)


def _line(name: str) -> str:
    return " ".join(name.split())


def _parts(truths: Sequence[Truth]) -> list[Term]:
    joined = all_of(truths)
    return [] if joined is True else conjuncts(term(joined))


def _stem(obligation: Obligation, query: Query) -> str:
    where = f"{obligation.kind}/{obligation.conjunct}/{obligation.action or obligation.kind}"
    return f"{where}({query.choice.text()})".replace(" ", "").replace("?", "any")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def file_name(induction: Induction, size: str) -> str:
    """The name of a proof's file, after its design and one of its constants."""
    constants: Mapping[str, object] = induction.translation.settings
    return f"proof-{induction.design.name}-{constants[size]}.zip"
