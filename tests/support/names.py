"""Bare participles among the names of a source text: `found`, `told`, `asked` read well aloud and cannot be searched.

A class, a function, a parameter, a field, a module and a variable of a module have a noun, or a verb with its noun. A
local may be a participle for `LINES` lines. The fields of a `TypedDict` are keys of files, and the members of an `Enum`
are words: neither counts. Nor does a parameter of a lambda, which lives in one expression.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache

import attrs

LINES = 5

IRREGULAR = frozenset(
    re.findall(
        r"\w+",
        """
        beaten begun born bought broken brought built caught chosen dealt done drawn driven eaten
        fallen fed flown forgotten fought found frozen given gone got grown heard held hidden kept
        known laid led left lost made meant met paid ridden risen said sat seen sent shaken shown
        slept sold spent spoken stolen stood struck stuck sunk swept sworn taken taught thought
        thrown told torn understood wanted won worn written
        """,
    )
)

NO_PARTICIPLES = frozenset(
    re.findall(
        r"\w+",
        """
        creed deed exceed feed heed hundred need proceed sacred seed speed succeed unused weed
        """,
    )
)
"""Words that only end like one."""

FIELD = frozenset(
    re.findall(
        r"\w+",
        """
        acked acknowledged advertised appended assigned committed compacted completed consumed
        diverged elected fenced fetched flushed invoked polled preferred produced reassigned
        rebalanced registered replicated subscribed truncated unfenced bounded covered disabled
        enabled explored folded guarded implied inlined interned proved quantified reduced refuted
        reproduced uncovered unbounded unproved unrolled violated visited witnessed accepted added
        cached claimed closed compiled compressed crashed created deleted elapsed expected failed
        finished generated hashed indexed keyed limited loaded mutated nested observed ordered
        packed parsed paused planted printed rejected removed rendered replayed required sampled
        sharded shared sorted stamped started stopped supported tagged typed unchanged unpacked
        unsupported untyped updated
        """,
    )
)
"""States that have this name in Kafka, in model checking, or wherever programs are written: no noun is clearer."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@attrs.frozen
class BareName:
    """A name that is a participle: the line that binds it first, its kind, and what it is within (`Class.method`)."""

    line: int
    kind: str
    scope: str
    name: str


def is_participle(name: str) -> bool:
    word = name.strip("_")
    if not (word.islower() or word.isupper() or word.istitle()):
        return False  # EpochAssigned says whose assignment
    word = word.lower()
    if "_" in word or word in FIELD or word in NO_PARTICIPLES:
        return False
    return word in IRREGULAR or (word.endswith("ed") and len(word) > 3)


@cache
def bare_names(source: str) -> tuple[BareName, ...]:
    """Every name in the source that the rule is about, once for each scope."""
    tree = ast.parse(source)
    return tuple(dict.fromkeys((*_globals(tree), *_within(tree, ()))))


def _globals(tree: ast.Module) -> Iterator[BareName]:
    for name, line in _stored(*tree.body):
        if is_participle(name):
            yield BareName(line, "variable", "", name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if alias.asname is not None and is_participle(alias.asname):
                    yield BareName(node.lineno, "alias", "", alias.asname)


def _stored(*nodes: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that are bound within, in whatever block, and where; not those of a comprehension or a function."""
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store(), lineno=line):
                yield name, line
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp() | ast.Lambda():
                pass
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass
            case _:
                yield from _stored(*ast.iter_child_nodes(node))


def _within(node: ast.AST, scope: tuple[str, ...]) -> Iterator[BareName]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.ClassDef(name=name, lineno=line):
                if is_participle(name):
                    yield BareName(line, "class", ".".join(scope), name)
                yield from _of_class(child, scope)
                yield from _within(child, (*scope, child.name))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _of_function(child, scope)
                yield from _within(child, (*scope, child.name))
            case _:
                yield from _within(child, scope)


def _of_class(node: ast.ClassDef, scope: tuple[str, ...]) -> Iterator[BareName]:
    if any(word in ast.unparse(base) for base in node.bases for word in ("TypedDict", "Enum", "Flag")):
        return
    inside = ".".join((*scope, node.name))
    fields = dict(_stored(*node.body))
    for attribute in ast.walk(node):
        match attribute:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store(), lineno=line):
                fields.setdefault(name, line)
            case _:
                pass
    yield from (BareName(line, "field", inside, name) for name, line in fields.items() if is_participle(name))


def _of_function(node: Function, scope: tuple[str, ...]) -> Iterator[BareName]:
    if is_participle(node.name):
        yield BareName(node.lineno, "function", ".".join(scope), node.name)
    inside, parameters = ".".join((*scope, node.name)), _parameters(node.args)
    yield from (BareName(a.lineno, "parameter", inside, a.arg) for a in parameters if is_participle(a.arg))
    lines = dict[str, list[int]]()
    bound = {a.arg for a in parameters}
    for name, line, stores in _locals(node, frozenset()):
        if is_participle(name) and (stores or name in lines) and name not in bound:
            lines.setdefault(name, []).append(line)
    yield from (BareName(at[0], "local", inside, name) for name, at in lines.items() if max(at) - min(at) >= LINES)


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    variable = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *variable]


def _locals(node: ast.AST, hidden: frozenset[str]) -> Iterator[tuple[str, int, bool]]:
    """Each use of a name in a function's own scope, inner functions included: name, line, whether it is bound."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.ClassDef():
                continue
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                own = {a.arg for a in _parameters(child.args)} | _bound(child)
                yield from _locals(child, hidden | own)
            case ast.Lambda(args=arguments):
                yield from _locals(child, hidden | {a.arg for a in _parameters(arguments)})
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                own = {name for generator in child.generators for name in _bound(generator.target)}
                yield from _locals(child, hidden | own)
            case ast.Name(id=name, lineno=line, ctx=context):
                if name not in hidden:
                    yield name, line, isinstance(context, ast.Store)
            case ast.MatchAs(name=str(name), lineno=line) | ast.ExceptHandler(name=str(name), lineno=line):
                yield name, line, True
                yield from _locals(child, hidden)
            case _:
                yield from _locals(child, hidden)


def _bound(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
