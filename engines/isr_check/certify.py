"""A stored proof, checked again without any of the code that produced it.

A proof by induction is one zip file: queries in SMT-LIB, each of which must be unsatisfiable, and a manifest that says
what they prove together. This is checked, from the file alone:

- Nothing is missing. Every conjunct at the start and after every action, and every promise, for every choice of
  parameters, is there exactly once: as queries, or listed as something that the step does not change.
- Each query has the hash that the manifest gives. It consists of declarations and assertions, in words that mean the
  same to every solver (`smt_words`), and each assertion is accounted for. A conjunct before the step is worded as in
  the manifest, the same in all queries; so are the guards of a step. A conjunct after the step comes earlier in the
  list, and is worded like a goal that is proved for the same step; otherwise the argument could be circular.
- Solvers say again that each query is unsatisfiable (`opinions`).

This is not checked, because it takes the model:

- that a conjunct, a guard or a goal says in SMT-LIB what the model says;
- that what the manifest calls unchanged or impossible is so;
- that the definitions define something, so that they contradict nothing. Nobody proves that a state satisfies all
  conjuncts; z3 is only asked whether it can refute everything that is taken as given.

Where a sort has any number of elements, two more things are taken as given. If the hypotheses say that there is an
element of some kind, it may be called by the next free name (a *naming*). And a conjunct after the step says what was
proved of it, although the goal is about the named elements and one more, and the conjunct about all.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from lzma import LZMAError
from pathlib import Path
from typing import cast

import attrs

from isr_check.smt_words import CHARACTERS, SORTS, check_words, declared_once

SCHEMA = "insync/proof/1"
MANIFEST = "manifest.json"
TYPED, FIRST = "typed", "type-ok"
"""The name of the hypothesis that all values are in range, and the name of the conjunct that says so after a step."""
START, PRESERVATION, IMPLIED = "initial", "preserved", "implies"
VIEW = "|in view|"
"""A predicate that holds of some terms and means nothing: solvers instantiate quantifiers at terms that occur."""

LOGIC, QUESTION = "(set-logic ALL)", "(check-sat)"
ASSUMPTION_KINDS = ("bound", "definition", "holds")

Json = Mapping[str, object]
Key = tuple[str, str, str | None]


class BadProof(ValueError):
    """The file cannot be read as a proof: one sentence says why."""


@attrs.frozen
class Query:
    """An SMT-LIB text that must be unsatisfiable; `way` has the options of z3 with which it was first refuted."""

    name: str
    text: str
    way: tuple[tuple[str, bool | int | float | str], ...]


INSTANCES = (("auto_config", False), ("mbqi", False))
"""Options of z3 with which it only instantiates quantifiers at terms that occur."""

OPTIONS: Mapping[str, tuple[type, float]] = {
    "arith.solver": (int, 6),
    "auto_config": (bool, 1),
    "case_split": (int, 6),
    "delay_units": (bool, 1),
    "ematching": (bool, 1),
    "mbqi": (bool, 1),
    "qi.eager_threshold": (float, 1_000_000),
}
"""The options of z3 that a file may name, with type and highest value. Others write files, or take away the limits."""


@attrs.frozen
class Part:
    """A query as the manifest lists it; `assertions` are (kind, name, text), none if the file could not be read.

    `named_by`: the conjuncts that say that the element exists to which a naming gives a name.
    """

    file: str
    assertions: tuple[tuple[str, str, str], ...]
    named_by: tuple[str, ...] = ()


@attrs.frozen
class StoredProof:
    """A proof as read: the manifest, the queries, and one sentence for each thing that is wrong.

    `together` asserts everything that some query takes as given before a step. If a solver refuted it, the queries
    would prove anything. `definitions` and `namings` count different assertions of these kinds. `alone` counts the
    queries that assert nothing but the denied goal; they are few, unless somebody has replaced goals. `unchanged`
    counts the choices of obligations at which the file says that nothing changes, `impossible` those of actions.
    `parts` are the queries of each obligation and choice, and `sorts` the declaration of each symbol.
    """

    manifest: Json
    queries: tuple[Query, ...]
    together: Query
    definitions: int
    namings: int
    alone: int
    unchanged: int
    impossible: int
    parts: Mapping[tuple[Key, str], Sequence[Part]]
    sorts: Mapping[str, str]
    problems: tuple[str, ...]


def read_certificate(path: Path) -> StoredProof:
    """Read the proof in a file; BadProof if it is none. Whatever it lacks is listed in `problems`."""
    try:
        with zipfile.ZipFile(path) as archive:
            files = {name: archive.read(name).decode() for name in archive.namelist()}
            duplicates = [name for name, n in Counter(archive.namelist()).items() if n > 1]
    except OSError as problem:
        raise BadProof(f"cannot read {path}: {(problem.strerror or str(problem)).lower()}") from None
    except (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, LZMAError, ValueError, RuntimeError, EOFError):
        raise BadProof(f"{path} is not a proof: it is no zip file that can be read") from None
    try:
        manifest = cast("object", json.loads(files.pop(MANIFEST)))
        json.dumps(manifest, ensure_ascii=False).encode()  # half a character cannot be told
    except (KeyError, ValueError, RecursionError):
        raise BadProof(f"{path} is not a proof: it has no {MANIFEST} that can be read") from None
    if not isinstance(manifest, dict) or cast("Json", manifest).get("schema") != SCHEMA:
        raise BadProof(f"{path} is not a proof: its {MANIFEST} does not say {SCHEMA}")
    try:
        return _Reading(cast("Json", manifest), files, duplicates).proof()
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise BadProof(f"{path} is not a proof: its {MANIFEST} is not as it should be ({problem})") from None


class _Reading:
    """Reads a manifest and the queries that it lists; `problems` collects what is wrong."""

    def __init__(self, manifest: Json, files: Mapping[str, str], duplicates: Sequence[str]) -> None:
        self.manifest, self.files = manifest, files
        self.problems = [f"{name} is in the file twice" for name in duplicates]
        self.order = [_text(c, "name") for c in _list(manifest, "conjuncts")]
        self.property_kinds = {_text(p, "name"): _text(p, "kind") for p in _list(manifest, "wanted")}
        self.bounds = set(_texts(manifest, "bounds"))
        for name in ("free", *(["without"] if "without" in manifest else [])):
            _texts(manifest, name)
        for name in ("design", "model_hash"):
            _text(manifest, name)
        if not all(isinstance(v, str | int) for v in cast("Mapping[str, object]", manifest["constants"]).values()):
            raise TypeError("a constant is neither a number nor a word")
        holds = cast("Mapping[str, Sequence[str]]", manifest["holds"])
        self.holds = {name: frozenset(texts) for name, texts in holds.items()}
        self.hypothesis_texts = frozenset[str]().union(*self.holds.values())
        self.steps = _read_steps(manifest)
        self.parts: dict[tuple[Key, str], list[Part]] = {}
        self.definitions, self.namings = set[str](), set[str]()
        self.unchanged = 0
        self.many = bool(manifest.get("any_number"))
        self.queries: list[Query] = []
        self.sorts: dict[str, str] = {}

    def proof(self) -> StoredProof:
        for name, n in Counter([*self.order, TYPED]).items():
            if n > 1:
                self.problems.append(f"two conjuncts are called {name}")
        if self.order[:1] != [FIRST]:
            self.problems.append(f"the first conjunct is not {FIRST}")
        self._complete()
        used = Counter(part.file for parts in self.parts.values() for part in parts)
        self.problems += [f"{name} is used {n} times" for name, n in used.items() if n > 1]
        self.problems += [f"{name} belongs to no obligation" for name in self.files if name not in used]
        for (key, choice), parts in self.parts.items():
            for part in parts:
                for reason in self._wrong(key, choice, part):
                    self.problems.append(f"{part.file}: {reason}")
        alone = sum(len(p.assertions) == 1 for parts in self.parts.values() for p in parts)
        counts = len(self.definitions), len(self.namings), alone, self.unchanged, self._impossible()
        return StoredProof(
            self.manifest,
            tuple(self.queries),
            self._together(),
            *counts,
            self.parts,
            self.sorts,
            tuple(self.problems),
        )

    def _impossible(self) -> int:
        listed = cast("Mapping[str, Sequence[Json]]", self.manifest["steps"])
        return sum(bool(c.get("impossible")) for choices in listed.values() for c in choices)

    def _together(self) -> Query:
        """Every conjunct, bound and definition that some query asserts, as one query."""
        assumptions = {
            text: None
            for parts in self.parts.values()
            for p in parts
            for kind, _, text in p.assertions
            if kind in ASSUMPTION_KINDS
        }
        lines = [LOGIC, *(f"(declare-fun {name} {sort})" for name, sort in self.sorts.items())]
        lines += [f"(assert {text})" for text in assumptions]
        return Query("what is taken as given", "\n".join([*lines, QUESTION, ""]), INSTANCES)

    # what there has to be

    def _expected(self) -> Iterator[Key]:
        actions = [a for a in self.steps if a != START]
        for name in self.order:
            yield START, name, None
            yield from ((PRESERVATION, name, a) for a in actions)
        for name, kind in self.property_kinds.items():
            if kind == "always":
                yield IMPLIED, name, None
            elif kind == "step":
                yield from ((IMPLIED, name, a) for a in actions)
            else:
                self.problems.append(f"{name} is no promise that induction can prove")

    def _complete(self) -> None:
        """Check that every obligation is there exactly once for every choice of parameters, and read its queries."""
        obligations = _list(self.manifest, "obligations")
        count = Counter(_key(o) for o in obligations)
        expected = set(self._expected())
        self.problems += [f"{_obligation_name(key)} is missing" for key in sorted(expected - set(count), key=str)]
        self.problems += [
            f"{_obligation_name(key)} is no obligation of this proof" for key in count if key not in expected
        ]
        self.problems += [f"{_obligation_name(key)} is there {n} times" for key, n in count.items() if n > 1]
        for o in obligations:
            key = _key(o)
            unchanged = _texts(cast("Json", o["unchanged"]), "choices") if "unchanged" in o else []
            self.unchanged += len(unchanged)
            asked = [_text(q, "choice") for q in _list(o, "queries")]
            choice_counts = Counter([*unchanged, *asked])
            for choice in self._choices(key):
                if choice_counts.pop(choice, 0) != 1:
                    self.problems.append(
                        f"{_obligation_name(key)} is not there exactly once for the parameters ({choice})"
                    )
            self.problems += [f"{_obligation_name(key)} has no parameters ({choice})" for choice in choice_counts]
            for q in _list(o, "queries"):
                parts = [self._part(p) for p in _list(q, "parts")]
                self.parts[key, _text(q, "choice")] = parts
                if not parts:
                    self.problems.append(f"{_obligation_name(key)} has no query for ({_text(q, 'choice')})")

    def _choices(self, key: Key) -> list[str]:
        if key[0] == IMPLIED and key[2] is None:
            return [""]
        return list(self.steps.get(key[2] or START, {}))

    def _part(self, entry: Json) -> Part:
        """Read one query, and check that it is what the manifest says."""
        file, texts = _text(entry, "file"), self.files.get(_text(entry, "file"))
        if texts is None:
            self.problems.append(f"{file} is missing")
            return Part(file, ())
        if hashlib.sha256(texts.encode()).hexdigest() != entry["sha256"]:
            self.problems.append(f"{file} was changed: its hash is not that of the manifest")
        options = _options(entry)
        self.queries.append(Query(file, texts, tuple(options.items())))
        try:
            bodies = self._assertions(texts)
        except ValueError as reason:
            self.problems.append(f"{file}: {reason}")
            return Part(file, ())
        kinds = [tuple(a.partition(" ")[::2]) for a in _texts(entry, "assertions")]
        if len(kinds) != len(bodies):
            self.problems.append(f"{file} has {len(bodies)} assertions, not {len(kinds)} as the manifest says")
            return Part(file, ())
        assertions = tuple((kind, name, body) for (kind, name), body in zip(kinds, bodies, strict=True))
        return Part(file, assertions, tuple(_texts(entry, "named_by")) if "named_by" in entry else ())

    def _assertions(self, text: str) -> list[str]:
        """The assertions of a query; ValueError if it has anything else but declarations, before these."""
        if "\\" in text or '"' in text or CHARACTERS.fullmatch(text) is None:
            raise ValueError("it has a character that no query should")
        commands = list(_commands(text))
        if commands[:1] != [LOGIC] or commands[-1:] != [QUESTION]:
            raise ValueError("it does not begin with a logic and end with a question")
        assertions: list[str] = []
        symbols: list[str] = []
        for command in commands[1:-1]:
            declaration = re.fullmatch(r"\(declare-fun (\|[^|]*\||[^\s()|]+) (\([^()]*\) \w+)\)", command)
            if declaration:
                symbols.append(declaration[1])
                if not set(re.findall(r"\w+", declaration[2])) <= set(SORTS):
                    raise ValueError(f"{declaration[1]} is of a sort that no query should have")
                if self.sorts.setdefault(declaration[1], declaration[2]) != declaration[2]:
                    raise ValueError(f"{declaration[1]} is of another sort than elsewhere")
            elif command.startswith("(assert ") and command.endswith(")"):
                assertions.append(command[len("(assert ") : -1].strip())
            else:
                raise ValueError(f"it says {command.split()[0].strip('()')}, which no query should")
        spelling = declared_once(symbols)
        for assertion in assertions:
            check_words(assertion, spelling)
        return assertions

    # what each assertion may be

    def _wrong(self, key: Key, choice: str, part: Part) -> Iterator[str]:
        goals = [text for kind, _, text in part.assertions if kind == "goal"]
        if len(goals) != 1:
            yield f"it denies {len(goals)} goals, not one"
        if sum(kind == "naming" for kind, _, _ in part.assertions) > 1:
            yield "it names more than one element at a time"
        for kind, name, text in part.assertions:
            reason = self._no_reason(key, choice, kind, name, text)
            if reason is not None:
                yield reason
            if text == "false" or (VIEW in text and kind != "mark"):
                yield f"its {kind} {name} is false, or uses the predicate of the marks"

    def _no_reason(self, key: Key, choice: str, kind: str, name: str, text: str) -> str | None:
        """Why this assertion must not be in the query; None if it may."""
        match kind:
            case "goal":
                fine = text.startswith("(not ") and text != "(not true)"
                return None if fine else "its goal says nothing, or is not denied"
            case "bound":
                return None if text in self.bounds else "a bound is not among those of the manifest"
            case "definition":
                self.definitions.add(text)
                return None
            case "naming":
                self.namings.add(text)
                if key[0] == START:
                    return "it names an element at the start, where no conjunct says that there is one"
                return None if self.many else "it names an element, but every element has a name"
            case "mark":
                fine = text.startswith(f"({VIEW} ") and text.count(VIEW) == 1
                return None if fine else "a mark is more than one term"
            case "holds":
                if key[0] == START or (name != TYPED and name not in self.order):
                    return f"it uses {name}, which nothing says of the state before the step"
                return None if text in self.holds.get(name, ()) else f"{name} is not worded as in the manifest"
            case "guard":
                there = self.steps.get(key[2] or START, {}).get(choice, frozenset())
                return None if (name, text) in there else f"the step does not require {name} in these words"
            case "after":
                return self._later(key, choice, name, text)
            case _:
                return f"{kind} is no kind of assertion"

    def _later(self, key: Key, choice: str, name: str, text: str) -> str | None:
        """Why this conjunct must not be used after the step: only those that are proved without this goal may be."""
        if key[2] is None or name not in self.order:
            return f"it uses {name} after a step, but there is no step or no such conjunct"
        if key[0] == PRESERVATION and self.order.index(name) >= self.order.index(key[1]):
            return f"it uses {name} after the step, which does not come earlier: the argument would be circular"
        if self.many:
            return None
        proved = self.parts.get(((PRESERVATION, name, key[2]), choice), [])
        goals = {f"(not {text})" for text in self.hypothesis_texts} | {
            body for p in proved for kind, _, body in p.assertions if kind == "goal"
        }
        return None if f"(not {text})" in goals else f"{name} after the step is not worded like what is proved of it"


def _read_steps(manifest: Json) -> dict[str, dict[str, frozenset[tuple[str, str]]]]:
    """Action -> choice of parameters -> its guards, as name and text; choices that are impossible are left out."""
    steps: dict[str, dict[str, frozenset[tuple[str, str]]]] = {}
    for action, choices in cast("Mapping[str, Sequence[Json]]", manifest["steps"]).items():
        steps[action] = {
            _text(c, "choice"): frozenset((a, b) for a, b in cast("Sequence[tuple[str, str]]", c["guards"]))
            for c in choices
            if not c.get("impossible")
        }
    return steps


def _commands(text: str) -> Iterator[str]:
    """The commands of a query as they stand, without the comments between them."""
    depth, began = 0, 0
    for token in re.finditer(r";[^\n]*|\|[^|]*\||\"[^\"]*\"|[()]|[^\s();|\"]+", text):
        if token[0].startswith(";"):
            if depth:
                raise ValueError("there is a comment within a command")
        elif token[0] == "(":
            began = token.start() if depth == 0 else began
            depth += 1
        elif token[0] == ")":
            depth -= 1
            if depth == 0:
                yield text[began : token.end()]
        if depth < 0 or (depth == 0 and token[0] not in ")" and not token[0].startswith(";")):
            raise ValueError("it is not a list of commands")
    if depth:
        raise ValueError("a command has no end")


def _key(obligation: Json) -> Key:
    action = obligation["action"]
    return _text(obligation, "kind"), _text(obligation, "conjunct"), None if action is None else str(action)


def _obligation_name(key: Key) -> str:
    return f"{key[1]} / {key[2] or key[0]}"


def _text(value: Json, name: str) -> str:
    found = value[name]
    if not isinstance(found, str):
        raise TypeError(f"{name} is no text")
    return found


def _texts(value: Json, name: str) -> list[str]:
    found = value[name]
    if not isinstance(found, list) or not all(isinstance(x, str) for x in cast("list[object]", found)):
        raise TypeError(f"{name} is no list of texts")
    return cast("list[str]", found)


def _options(part: Json) -> Mapping[str, bool | int | float | str]:
    options = cast("Mapping[str, bool | int | float | str]", part["z3"])
    for name, value in options.items():
        type, most = OPTIONS.get(name, (None, 0))
        if type is None:
            raise ValueError(f"{name} is no option of z3 that a proof has")
        is_alike = isinstance(value, type) and isinstance(value, bool) == (type is bool)
        if isinstance(value, str) or not is_alike or not 0 <= value <= most:
            raise ValueError(f"{name} cannot be {value!r}")
    return options


def _list(value: Json, name: str) -> list[Json]:
    found = value[name]
    if not isinstance(found, list) or not all(isinstance(x, dict) for x in cast("list[object]", found)):
        raise TypeError(f"{name} is no list of entries")
    return cast("list[Json]", found)
