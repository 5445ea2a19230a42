"""A stored proof beside the model: its obligations are made again, and every formula in the file is one of theirs.

`isr_check.certify` checks that a file is a whole proof of what it says. Here is checked that the model says the same:

- The head (conjuncts, promises, constants, bounds, hypotheses) and the steps (choices of parameters, guards, which are
  impossible) are those that the design has.
- Where the file has a query, the model has an obligation to prove, and every part of its goal is asked, in its words.
- Each assertion of a query is a hypothesis, a guard, a conjunct after the step, a definition or a naming of the model.
- What the file calls unchanged has nothing to prove: the goal is, word for word, what is known before the step.

Formulas are compared as text, up to the names of bound variables and of symbols with a number. A renaming of those has
to be the same in a whole query. Then the query of the model is refuted wherever that of the file is. A formula that
says the same in other words is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import cast

import attrs

from isr_check.certify import START, VIEW, Key, Part, StoredProof
from isr_check.smt.induction import Induction, Obligation, Query
from isr_check.smt.proof_file import choices_of, manifest_head, manifest_steps
from isr_check.smt.smtlib import declarations, formula
from isr_check.smt.strategy import Strategy
from isr_check.smt.terms.logic import Term, conjuncts, identity
from isr_check.smt_words import BINDERS, Expression, expression
from isr_lang import Property

Json = Mapping[str, object]
Tokens = tuple[str, ...]
Renaming = dict[str, str]
"""Symbols of a stored query -> symbols of the model."""

NUMBER = re.compile(r"![0-9]+")
"""In the name of a symbol that stands for a parameter, or for what a definition defines: its number says nothing."""
HEAD = {
    "design": "design",
    "model_hash": "model",
    "constants": "constants",
    "free": "open bounds",
    "any_number": "sorts of any number",
    "conjuncts": "conjuncts",
    "wanted": "promises",
    "bounds": "bounds",
    "holds": "hypotheses",
}
"""The entries of the manifest that the model has, too, and what they are called in a sentence."""
_DECLARATION = re.compile(r"\(declare-fun (\|[^|]*\||[^\s()|]+) (\([^()]*\) \w+)\)")


@attrs.frozen
class Comparison:
    """One sentence for each difference from the model. The rest counts what agrees with it.

    `formulas`: assertions of queries. `unchanged`: choices of obligations at which a step changes nothing that the
    conjunct reads. `impossible`: choices of actions of which a guard is false.
    """

    problems: tuple[str, ...]
    formulas: int = 0
    unchanged: int = 0
    impossible: int = 0


def compare(proof: StoredProof, induction: Induction, properties: Sequence[Property]) -> Comparison:
    """The stored proof, of which `certify` found nothing wrong, beside the induction and promises of its model."""
    obligations = list(induction.obligations(properties))
    starts = [q for o in obligations if o.kind == START for q in o.queries]
    steps = cast("Mapping[str, Sequence[Json]]", manifest_steps(induction, starts))
    try:
        problems = [*_head(proof.manifest, manifest_head(induction, properties)), *_steps(proof.manifest, steps)]
    except (ValueError, RecursionError):
        problems = ["a hypothesis, or the guard of a step, cannot be read"]
    if problems:
        return Comparison(tuple(problems))
    comparing = _Comparing(proof, induction)
    for o in obligations:
        comparing.obligation(o)
    impossible = sum(bool(choice.get("impossible")) for choices in steps.values() for choice in choices)
    return Comparison(tuple(comparing.problems), comparing.formulas, comparing.unchanged, impossible)


def _head(manifest: Json, model: Json) -> Iterator[str]:
    for name, what in HEAD.items():
        mine, yours = model[name], manifest.get(name)
        if name == "holds":
            mine, yours = _wording(mine), _wording(yours)
        if mine != yours:
            yield f"its {what} are not those of the model" if what.endswith("s") else f"its {what} is another one"


def _wording(holds: object) -> list[tuple[str, list[Tokens]]]:
    """Hypotheses by name; how their symbols are numbered is compared in each query."""
    by_name = cast("Mapping[str, Sequence[str]]", holds)
    return [(name, [_shape(_tokens(text)) for text in texts]) for name, texts in by_name.items()]


def _steps(manifest: Json, model: Mapping[str, Sequence[Json]]) -> Iterator[str]:
    file_steps = cast("Mapping[str, Sequence[Json]]", manifest["steps"])
    yield from (f"the action {name} is missing" for name in model if name not in file_steps)
    yield from (f"the model has no action {name}" for name in file_steps if name not in model)
    for name in [n for n in model if n in file_steps]:
        mine = {str(c["choice"]): c for c in model[name]}
        yours = {str(c["choice"]): c for c in file_steps[name]}
        if len(file_steps[name]) != len(model[name]) or set(mine) != set(yours):
            yield f"{name} has other choices of parameters"
        for choice in [c for c in mine if c in yours]:
            where = f"{name}({choice})"
            if bool(mine[choice].get("impossible")) != bool(yours[choice].get("impossible")):
                yield f"{where} is called {'possible' if mine[choice].get('impossible') else 'impossible'}, and is not"
            elif not mine[choice].get("impossible") and not _same_guards(
                mine[choice]["guards"], yours[choice]["guards"]
            ):
                yield f"{where} has other guards"


def _same_guards(mine: object, yours: object) -> bool:
    """Whether guards are the same by name and formula; how their symbols are numbered is compared in each query."""
    pairs = [[(name, _shape(_tokens(text))) for name, text in cast("list[list[str]]", x)] for x in (mine, yours)]
    return pairs[0] == pairs[1]


class _Comparing:
    """Compares the queries of a file with those of the model; `problems` collects the differences."""

    def __init__(self, proof: StoredProof, induction: Induction) -> None:
        self.proof, self.induction = proof, induction
        self.strategy = Strategy(induction, {})
        self.problems: list[str] = []
        self.formulas = self.unchanged = 0
        self._texts: dict[int, tuple[Term, Tokens]] = {}
        self._sorts: dict[str, str] = {}

    def obligation(self, o: Obligation) -> None:
        key: Key = o.kind, o.conjunct, o.action
        queries = {q.choice.text(): q for q in o.queries}
        for choice in choices_of(self.induction, o):
            parts = self.proof.parts.get((key, choice))
            where = f"{o.name}({choice})"
            if choice not in queries and parts is None:
                self.unchanged += 1
            elif choice not in queries:
                self.problems.append(f"{where} is asked, and the model has nothing to prove there")
            elif parts is None:
                self.problems.append(f"{where} is called unchanged, and the step can change it")
            else:
                self._query(o, queries[choice], parts, where)

    def _query(self, o: Obligation, query: Query, parts: Sequence[Part], where: str) -> None:
        goals = conjuncts(query.goal)
        if len(goals) != len(parts):
            self.problems.append(f"{where} has {len(parts)} queries, and the model's goal {len(goals)} parts")
            return
        for goal, part in zip(goals, parts, strict=True):
            try:
                self.problems += [f"{part.file}: {reason}" for reason in self._part(o, query, goal, part)]
            except (ValueError, RecursionError):
                self.problems.append(f"{part.file}: one of its formulas is nested too deep, or cannot be read")
            self.formulas += len(part.assertions)

    def _part(self, o: Obligation, query: Query, goal: Term, part: Part) -> Iterator[str]:
        """What a query asserts that the model does not."""
        pools: dict[tuple[str, str], list[Term]] = {}
        for kind, name, _ in part.assertions:
            if (kind, name) not in pools and kind not in ("mark", "definition"):
                pools[kind, name] = self._pool(o, query, goal, kind, name, part.named_by)
        formulas = [(kind, name, _tokens(text)) for kind, name, text in part.assertions if kind != "mark"]
        first = [(kind, name, tokens) for kind, name, tokens in formulas if kind != "definition"]
        renaming: Renaming = {}
        terms: list[Term] = []
        for kind, name, tokens in first:
            term = self._match(tokens, pools[kind, name], renaming, is_goal=kind == "goal")
            if term is None:
                yield f"its {f'{kind} {name}'.strip()} is not worded like the model's"
                return
            terms.append(term)
        definitions = [tokens for kind, _, tokens in formulas if kind == "definition"]
        if definitions and not self._define(definitions, terms, query, renaming):
            yield "a definition is none of the model's"
        for name in {t for _, _, tokens in formulas for t in tokens}:
            sort = self.proof.sorts.get(name)
            if sort is not None and name != VIEW and sort != self._sorts.get(renaming.get(name, name)):
                yield f"{name} is declared of another sort than in the model"

    def _pool(
        self, o: Obligation, query: Query, goal: Term, kind: str, name: str, named_by: Sequence[str]
    ) -> list[Term]:
        """The formulas of the model that an assertion of this kind and name may be."""
        hypotheses = self.induction.hypotheses
        match kind:
            case "goal":
                return [goal]
            case "bound":
                return [x for x in map(_term, self.induction.translation.assumptions) if x is not None]
            case "holds":
                return [x for n, x in hypotheses if n == name]
            case "guard":
                own = query.hypotheses if o.kind == START else query.hypotheses[len(hypotheses) :]
                return [x for n, x in own if " ".join(n.split()) == name]
            case "after":
                conjunct = next((c for c in self.induction.conjuncts if c.name == name), None)
                return [] if conjunct is None or query.new is None else self.induction.facts(conjunct, query.new)
            case "naming":
                try:
                    return [w.term for w, _ in self.strategy.witnesses(o, query, named_by)]
                except ValueError:
                    return []  # by a conjunct after the step that does not come earlier
            case _:
                return []

    def _define(self, definitions: Sequence[Tokens], terms: Sequence[Term], query: Query, renaming: Renaming) -> bool:
        """Whether each is an axiom of the model about some symbol; the renaming grows."""
        translation = self.induction.translation
        everything = [*terms, *(x for _, x in query.hypotheses), query.goal]
        for wider in (list(terms), everything):
            pool = [*(a for _, a in translation.axioms), *translation.defining(wider, wider)]
            trial = dict(renaming)
            if self._match_all(definitions, pool, trial):
                renaming |= trial
                return True
        return False

    def _match_all(self, formulas: Sequence[Tokens], pool: Sequence[Term], renaming: Renaming) -> bool:
        """Match every formula with one of the pool, under one renaming. Of several it takes the first that fits."""
        by_shape: dict[Tokens, list[Term]] = {}
        for term in pool:
            by_shape.setdefault(_shape(self._text(term)), []).append(term)
        waiting = sorted(formulas, key=lambda tokens: len(by_shape.get(_shape(tokens), [])))
        return self._match_next(waiting, by_shape, renaming)

    def _match_next(
        self, waiting: Sequence[Tokens], by_shape: Mapping[Tokens, Sequence[Term]], renaming: Renaming
    ) -> bool:
        if not waiting:
            return True
        trials: list[Renaming] = []
        for term in by_shape.get(_shape(waiting[0]), []):
            trial = _extend(waiting[0], self._text(term), renaming)
            if trial is None or trial in trials:
                continue
            trials.append(trial)
            self._declare(term)
            if self._match_next(waiting[1:], by_shape, trial):
                renaming |= trial
                return True
        return False

    def _match(self, tokens: Tokens, pool: Iterable[Term], renaming: Renaming, *, is_goal: bool) -> Term | None:
        """The formula of the pool that is the same up to a renaming, which grows by what it takes."""
        fits: list[tuple[int, Renaming, Term]] = []
        for term in pool:
            text = self._text(term)
            trial = _extend(tokens, ("(", "not", *text, ")") if is_goal else text, renaming)
            if trial is not None:
                fits.append((sum(a != b for a, b in trial.items()), trial, term))
        if not fits:
            return None
        _, trial, term = min(fits, key=lambda x: x[0])
        renaming |= trial
        self._declare(term)
        return term

    def _text(self, term: Term) -> Tokens:
        if identity(term) not in self._texts:
            self._texts[identity(term)] = term, _tokens(formula(term))
        return self._texts[identity(term)][1]

    def _declare(self, term: Term) -> None:
        for line in declarations(term):
            declared = _DECLARATION.fullmatch(line)
            assert declared is not None, line
            self._sorts[declared[1]] = declared[2]


def _term(truth: object) -> Term | None:
    return None if isinstance(truth, bool) else cast("Term", truth)


def _extend(formula_text: Tokens, model: Tokens, renaming: Renaming) -> Renaming | None:
    """The renaming, with what makes the stored formula that of the model; None if nothing does."""
    if len(formula_text) != len(model):
        return None
    trial = dict(renaming)
    for a, b in zip(formula_text, model, strict=True):
        numbered = NUMBER.search(a) is not None and NUMBER.search(b) is not None
        if (not numbered and a != b) or (numbered and trial.setdefault(a, b) != b):
            return None
    return trial


@lru_cache(maxsize=100_000)
def _shape(tokens: Tokens) -> Tokens:
    return tuple("!" if NUMBER.search(t) else t for t in tokens)


@lru_cache(maxsize=100_000)
def _tokens(text: str) -> Tokens:
    """A formula as words, in which a bound variable is its place among those around it; ValueError if it is none."""
    canonical: list[str] = []
    _write(expression(text), {}, 0, canonical)
    return tuple(canonical)


def _write(x: Expression, bound: Mapping[str, str], depth: int, words: list[str]) -> None:
    """Append the words of an expression; `bound` has the variables around it, and `depth` says how many these are."""
    if isinstance(x, str):
        words.append(bound.get(x, x))
        return
    words.append("(")
    if x and x[0] in BINDERS and len(x) == 3:
        words += [str(x[0]), "("]
        inner = dict(bound)
        for pair in cast("list[list[Expression]]", x[1]):
            name, value = pair
            inner[str(name)] = f"#{depth}"
            words += ["(", f"#{depth}"]
            depth += 1
            _write(value, bound, depth, words)
            words.append(")")
        words.append(")")
        _write(x[2], inner, depth, words)
    else:
        for part in x:
            _write(part, bound, depth, words)
    words.append(")")
