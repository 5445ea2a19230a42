"""From promise to action to broker to test, found in the source texts, with what is missing.

Nothing here is a list that somebody keeps: which action concerns a promise is read off the model's graph, which
function of the broker is an action is the one that names it, and a test covers what it names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

import attrs

from isr_lang import Instance, Property
from isr_lang.instance import reads
from isr_report.html import code, table


@attrs.frozen
class Place:
    """Where something is named: a function, or nothing but the module."""

    file: str
    line: int
    symbol: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.symbol}".rstrip()


@attrs.frozen
class ActionRow:
    """`driver`: the environment's doing, which no core answers for."""

    name: str
    model: str
    broker: tuple[Place, ...]
    tests: tuple[Place, ...]
    replayed: int | None


@attrs.frozen
class PromiseRow:
    """`actions` are those that write a variable which the promise reads; `killers`: whose guards it needs."""

    name: str
    model: str
    actions: tuple[str, ...]
    killers: tuple[str, ...]
    tests: tuple[Place, ...]


@attrs.frozen
class TraceabilityTable:
    """All rows, and in sentences what a row lacks."""

    actions: tuple[ActionRow, ...]
    promises: tuple[PromiseRow, ...]
    missing: tuple[str, ...]


def trace_to_sources(
    instances: Sequence[Instance],
    root: Path,
    broker: Sequence[str],
    tests: str,
    *,
    killers: Mapping[str, Sequence[str]],
    replayed: Mapping[str, int],
) -> TraceabilityTable:
    """Everything found in the sources below `root`. `instances` are of one design, at settings of which each has what
    the others lack; `killers`: the actions whose guards a promise was seen to need."""
    design = instances[0].design
    names, promised = [a.name for a in design.actions], [p.name for p in design.properties]
    code_of = mentions(root, broker, names)
    test_of = mentions(root, [tests], [*names, *promised], tests=True)
    actions = tuple(
        ActionRow(
            a.name,
            _short(root, a.where.file, a.where.line),
            tuple(code_of.get(a.name, ())),
            tuple(test_of.get(a.name, ())),
            replayed.get(a.name),
        )
        for a in design.actions
    )
    concerns = dict[str, dict[str, None]]()
    for instance in instances:
        for p in instance.properties:
            seen = _reads(p, instance)
            writers = [a.name for a in instance.actions if seen & {u.variable for u in a.updates}]
            concerns.setdefault(p.name, {}).update(dict.fromkeys(writers))
    promises = tuple(
        PromiseRow(
            p.name,
            _short(root, p.where.file, p.where.line),
            tuple(n for n in names if n in concerns.get(p.name, {})),
            tuple(killers.get(p.name, ())),
            tuple(test_of.get(p.name, ())),
        )
        for p in design.properties
    )
    return TraceabilityTable(actions, promises, tuple(_missing(actions, promises)))


def _missing(actions: Iterable[ActionRow], promises: Iterable[PromiseRow]) -> Iterator[str]:
    for a in actions:
        if not a.broker:
            yield f"no function of the broker names the action {a.name}"
        if not a.tests:
            yield f"no test names the action {a.name}"
    for p in promises:
        if not p.tests:
            yield f"no test names the promise {p.name}"
        if not p.actions:
            yield f"no action writes what {p.name} reads"


def _reads(p: Property, instance: Instance) -> set[str]:
    return reads(p.condition, instance) | (reads(p.trigger, instance) if p.trigger is not None else set[str]())


def mentions(
    root: Path, folders: Sequence[str], names: Iterable[str], *, tests: bool = False
) -> dict[str, list[Place]]:
    """The innermost function around each mention of a name: its own name, or a string that is nothing but the name;
    where there is none, a docstring whose `Model:` has it. Of tests: the tests, and the tables beside them."""
    name_set, places, places_in_docs = set(names), dict[str, list[Place]](), dict[str, list[Place]]()
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            tree, file = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(root).as_posix()
            for text, place in _texts(tree, file):
                if tests and place.symbol and not place.symbol.rpartition(".")[2].startswith("test_"):
                    continue
                if text in name_set:
                    _add(places.setdefault(text, []), place)
                elif not tests:
                    for name in name_set & _model_words(text):
                        _add(places_in_docs.setdefault(name, []), place)
        for path in sorted((root / folder).rglob("*.toml")) if tests else ():
            for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for name in name_set & set(re.findall(r'"([^"]*)"', line)):
                    _add(places.setdefault(name, []), Place(path.relative_to(root).as_posix(), n, ""))
    return places_in_docs | places


def _add(places: list[Place], place: Place) -> None:
    if all((p.file, p.symbol) != (place.file, place.symbol) for p in places):
        places.append(place)


def _texts(tree: ast.Module, file: str) -> Iterator[tuple[str, Place]]:
    """Names of functions and classes, and strings, each with the function around it."""

    def walk(node: ast.AST, around: Place) -> Iterator[tuple[str, Place]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = Place(file, child.lineno, f"{around.symbol}.{child.name}".lstrip("."))
                yield child.name, inner
                yield from walk(child, inner)
                continue
            if isinstance(child, ast.Constant) and isinstance(child.value, str):
                yield child.value, around if around.symbol else Place(file, child.lineno, "")
            yield from walk(child, around)

    yield from walk(tree, Place(file, 0, ""))


def _model_words(doc: str) -> set[str]:
    """The words after `Model:`, to the end of the paragraph."""
    _, found, after = doc.partition("Model: ")
    return set(re.findall(r"\w+", after.partition("\n\n")[0])) if found else set()


def _short(root: Path, file: str, line: int) -> str:
    path = Path(file)
    return f"{path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name}:{line}"


# The page


def section(rows: TraceabilityTable | None) -> str:
    if rows is None:
        return '<p class="quiet">Made outside of a checkout: the sources that this is read off are not here.</p>'
    missing = "".join(f"<li>{escape(line)}</li>" for line in rows.missing)
    gaps = f'<ul class="gaps">{missing}</ul>' if rows.missing else "<p>Nothing: every row is complete.</p>"
    promises = [(code(p.name), code(p.model), _actions(p), _tests(p.tests)) for p in rows.promises]
    has_replays = any(a.replayed is not None for a in rows.actions)
    actions = [
        (
            code(a.name),
            code(a.model),
            "<br>".join(code(str(p)) for p in a.broker) or '<b class="flagged">none</b>',
            _tests(a.tests),
            *((f"{a.replayed:,}" if a.replayed is not None else "",) if has_replays else ()),
        )
        for a in rows.actions
    ]
    replayed = ("edges replayed",) if has_replays else ()
    whole_promises = sum(bool(p.tests and p.actions) for p in rows.promises)
    whole_actions = sum(bool(a.tests and a.broker) for a in rows.actions)
    return (
        f"<h3>What is missing</h3>{gaps}"
        + _folded(
            f"{len(rows.promises)} promises, {whole_promises} of them with actions and tests",
            table(("promise", "in the model", "actions that write what it reads", "tests that name it"), promises),
        )
        + _folded(
            f"{len(rows.actions)} actions, {whole_actions} of them with a function of the broker and tests",
            table(
                ("action", "in the model", "in the broker", "tests that name it", *replayed),
                actions,
                (4,) if has_replays else (),
            ),
        )
    )


def _folded(says: str, content: str) -> str:
    return f'<details class="fold"><summary>{says}</summary>{content}</details>'


def _actions(p: PromiseRow) -> str:
    if not p.actions:
        return "none"
    needed = f"{len(p.killers)} of them with a guard that it needs; " if p.killers else ""
    listed = ", ".join(f"<b>{code(a)}</b>" if a in p.killers else code(a) for a in p.actions)
    return f"<details><summary>{len(p.actions)} actions</summary>{needed}{listed}</details>"


def _tests(places: Sequence[Place]) -> str:
    if not places:
        return '<b class="flagged">none</b>'
    listed = "".join(f"<li>{code(str(p))}</li>" for p in places)
    return f"<details><summary>{len(places)}</summary><ul>{listed}</ul></details>"
