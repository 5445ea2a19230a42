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


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


IRREGULAR = _words(
    """
    arisen beaten begun bent bidden bitten bled blown born borne bought bred broken brought built burnt
    caught chosen clung dealt done drawn driven dug eaten fallen fed flown flung forbidden forgiven
    forgotten fought found frozen given gone got grown heard held hewn hidden hung kept known laid learnt
    led lent lit left lost made meant met paid proven ridden risen said sat seen sent sought shaken shown
    shrunk slain slept slid sold sown spent spoken spun stolen stood strewn struck strung stuck stung
    sung sunk swept swollen sworn swung taken taught thought thrown told torn trodden understood
    wept woken won wanted worn wound woven written wrung
    """
)

PREFIXES = ("un", "over", "re", "mis", "under", "out", "fore", "with", "up", "inter")
"""What may stand before an irregular one: unseen, overtaken, rebuilt, mistaken, withdrawn."""

UNTOUCHED = _words("cut heard hit hurt put read set shut split spread")
"""Words that are a verb, too, and a participle after `un` only: unread."""

NO_PARTICIPLES = _words("creed deed exceed feed heed hundred need proceed sacred seed speed succeed unused weed")
"""Words that only end like one."""

OF_KAFKA = _words(
    """
    acked acknowledged advertised appended assigned committed compacted compressed consumed diverged elected
    fenced fetched flushed polled preferred produced reassigned rebalanced registered replicated
    resigned stopped subscribed tagged truncated unattached unknown
    """
)
"""Kafka's words: advertised.listeners, a diverging epoch, a preferred leader, tagged fields, UNKNOWN_TOPIC_ID."""

OF_CHECKING = _words(
    """
    accepted bounded covered enabled explored folded generated guarded implied inlined interned
    invoked completed learnt mutated observed packed planted proved quantified reduced refuted
    rejected replayed unbounded unchanged unrolled violated visited witnessed
    """
)
"""Words of TLA+ and TLC (ENABLED, UNCHANGED, states generated), of automata that accept, of solvers (learnt clauses),
of compilers, of Jepsen's histories (an operation is invoked, and completed), and of the glossary (a planted bug)."""

OF_PYTHON = _words("cached closed compiled expected failed typed")
"""functools.cache, file.closed, compile(), what a test expected, a test that failed, py.typed."""

PLAIN = _words("added elapsed shared stamped started")
"""Terms of nobody, in 45 names: `elapsed` seconds, what is `shared`, `added`, `started`, or `stamped` with a time."""

FIELD = OF_KAFKA | OF_CHECKING | OF_PYTHON | PLAIN
"""States that have this name where others look for them. `tests/test_names.py` asks that each is a name somewhere."""

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
    if "_" in word or word in NO_PARTICIPLES:
        return False
    return word in IRREGULAR or (word.endswith("ed") and len(word) > 3) or any(_has_prefix(word, p) for p in PREFIXES)


def _has_prefix(word: str, prefix: str) -> bool:
    verb = word.removeprefix(prefix)
    return verb != word and (verb in IRREGULAR or (prefix == "un" and verb in UNTOUCHED))


def is_bare(name: str) -> bool:
    """A participle that is no word of the field."""
    return is_participle(name) and name.strip("_").lower() not in FIELD


@cache
def participles(source: str) -> tuple[BareName, ...]:
    """Every name in the source that the rule is about, words of the field, too, once for each scope."""
    tree = ast.parse(source)
    return tuple(dict.fromkeys((*_globals(tree), *_within(tree, ()))))


def bare_names(source: str) -> tuple[BareName, ...]:
    """Those of them that are no words of the field."""
    return tuple(name for name in participles(source) if is_bare(name.name))


def _globals(tree: ast.Module) -> Iterator[BareName]:
    for name, line in _stored(*tree.body):
        if is_participle(name):
            yield BareName(line, "variable", "", name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from (BareName(node.lineno, "variable", "", name) for name in node.names if is_participle(name))
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
            case ast.MatchAs(name=str(name), lineno=line) | ast.MatchStar(name=str(name), lineno=line):
                yield name, line
                yield from _stored(*ast.iter_child_nodes(node))
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
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store(), lineno=line):
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


def words_without_name(source: str) -> Iterator[tuple[int, str]]:
    """Bare participles that a docstring quotes as names, with its line, and that are no name or word of the source."""
    tree = ast.parse(source)
    docs = [node for node in ast.walk(tree) if isinstance(node, ast.Expr) and _is_text(node.value)]
    names = {word for node in ast.walk(tree) if not any(node is doc.value for doc in docs) for word in _own_words(node)}
    for doc in docs:
        for quoted in re.findall(r"(?<!`)`([A-Za-z_.]+)`(?!`)", ast.unparse(doc)):
            word = quoted.rpartition(".")[2]
            if is_bare(word) and word not in names:
                yield doc.lineno, word


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _own_words(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word) | ast.keyword(arg=str(word)):
            return (word,)
        case ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word) | ast.ClassDef(name=word):
            return (word,)
        case ast.Constant(value=str(text)):
            return tuple(re.findall(r"\w+", text))
        case _:
            return ()
