"""Misuse is refused when the model is imported, on the model's own line, with the right spelling.

Each mistake is a tiny model in a file of its own; the line that must be reported ends in `# here`.
"""

from pathlib import Path

import pytest
from tests.support.sources import write

from isr_lang import ModelError

PRELUDE = """
from typing import ClassVar
from isr_lang import *

SIZE = bound("size", "How many workers there are.", default=2, high=3)
class Worker(Sort, size=SIZE, prefix="w", symmetric=True):
    "Who works."
class Machine(Sort, size=SIZE, prefix="m"):
    "What is worked on."
class Level(Number, high=3):
    "How far."
class Weight(Number, high=3):
    "How heavy."
class Light(Choice):
    RED: ClassVar["Light"]
    GREEN: ClassVar["Light"]
class State(Struct):
    flag: Bool = var("A flag.")
    level: Level = var("A level.")
    weight: Weight = var("A weight.")
    light: Light = var("A light.")
    done: Set[Worker] = var("Who is done.")
    busy: Map[Worker, Bool] = var("Who is busy.")
    first: Maybe[Worker] = var("Who came first.")
    seen: Seq[Level, Level] = var("What was seen.")
@define
def reached(s: State, n: Level) -> Bool:
    return s.level >= n
"""


def guard(condition: str) -> str:
    return f"""
@action
def act(old: State, new: State, w: Worker, m: Machine) -> Step:
    return (
        old.flag,
        {condition},  # here
        new.flag,
    )
"""


def lines(*source: str) -> str:
    return "\n".join(source) + "\n"


def act(*body: str) -> str:
    head = "def act(old: State, new: State, w: Worker) -> Step:"
    return lines("@action", head, *(f"    {b}" for b in body))


def prop(*body: str) -> str:
    return lines("@always", "def promise(s: State) -> Bool:", *(f"    {b}" for b in body))


GUARDS = {
    # what Python decides before a symbolic value can speak up
    "and": ("old.flag and old.busy[w]", "a & b instead of `a and b`"),
    "and of comparisons": ("old.level == 1 and old.weight == 2", "(a == b) & (c == d)"),
    "or": ("old.flag or old.busy[w]", "a | b instead of `a or b`"),
    "not": ("not old.flag", "~a instead of `not a`"),
    "in": ("w in old.done", "S.has(x) instead of x in S"),
    "not in": ("w not in old.done", "S.has(x) instead of x in S"),
    "in, of a map": ("w in old.busy", "S.has(x) instead of x in S"),
    "conditional expression": ("old.flag if old.busy[w] else old.flag", "when(c, a, b)"),
    "chained comparison": ("0 <= old.level <= 2", "(a <= b) & (b <= c)"),
    "chained equality": ("old.level == 1 == 1", "(a <= b) & (b <= c)"),
    "max": ("max(old.level, old.level + 1) == 2", "when(a < b, a, b)"),
    "any": ("any([old.flag, old.busy[w]])", "forall and exists instead of all and any"),
    "and inside a quantifier": (
        "forall(old.flag and old.busy[v] for v in Worker.all())",
        "a & b instead of `a and b`",
    ),
    # quantifiers
    "list in a quantifier": ("forall([old.busy[v] for v in Worker.all()])", "forall(... for x in S)"),
    "list of conditions": ("forall([old.flag, old.busy[w]])", "forall(... for x in S), not a list"),
    "list inside a generator": (
        "forall(forall([old.busy[v] for v in Worker.all()]) for u in Worker.all())",
        "forall(... for x in S), not a list",
    ),
    "any of a set": ("any(old.busy[v] for v in Worker.all())", "forall(... for x in S)"),
    "filter": ("forall(old.flag for v in Worker.all() if old.done.has(v))", "forall(c.implies(p) for ...)"),
    "filter with and": (
        "exists(old.busy[v] and old.flag for v in Worker.all() if old.done.has(v))",
        "exists(c & p for ...)",
    ),
    "filter in where": ("old.done.where(lambda v: not old.busy[v]).is_empty()", "~a instead of `not a`"),
    "quantifier over a range": ("forall(old.flag for i in range(3))", "forall(... for x in S)"),
    "quantifier over a map": ("forall(b for b in old.busy)", "m[k] ... for k in K.all()"),
    "quantifier over a sequence": ("forall(n == 1 for n in old.seen)", "Index.below(s.length())"),
    "quantifier over a number": ("forall(n == 1 for n in old.level)", "iterate sets"),
    "two variables": ("count(old.flag for v in Worker.all() for u in old.done) == 1", "one loop variable"),
    "iterating a set": ("sum([1 for v in old.done]) == 1", "forall(... for x in S)"),
    # precedence
    "& before ==": ("old.level == 1 & old.weight == 2", "each comparison in parentheses"),
    "& before == with a condition": ("old.flag & old.level == 1", "(a == b) & (c == d)"),
    "| before <": ("old.level < 1 | old.weight < 2", "each comparison in parentheses"),
    "~ before ==": ("~old.level == 1", "~(a == b)"),
    # types
    "map indexed by the wrong sort": ("old.busy[m]", "old.busy is indexed by Worker, and m is a Machine"),
    "two kinds of number": ("old.level == old.weight", "old.weight is a Weight, not the Level"),
    "sum of two kinds": ("old.level + old.weight == 1", "old.weight is a Weight, not the Level"),
    "member of the wrong sort": ("old.done.has(m)", "m is a Machine, not the Worker"),
    "set for an element": ("old.done.has(old.done)", "is a Set[Worker], not the Worker"),
    "maybe of the wrong sort": ("old.first == m", "m is a Machine, not the Maybe[Worker]"),
    "None for NONE": ("old.first == None", "write NONE"),
    "a choice as text": ('old.light == "gren"', "write Light.GREEN"),
    "a number for a sort": ("w == 1", "take one as a parameter"),
    "a Python set": ("old.done == set()", "Set.of(a, b) or Set.empty(...)"),
    "order of a sort": ("w < w", "does not apply to w: Worker"),
    "multiplication": ("old.level * 2 == 2", "does not apply to old.level"),
    "a truth value as a number": ("old.level == True", "True is not a value of Level"),
    "len": ("len(old.done) == 1", "S.size() for a set or s.length() for a sequence"),
    "range of a symbol": ("[1 for i in range(old.level)] == []", "Number.below(n)"),
    "index of a set": ("old.done[w]", "only a map or a sequence has an index"),
    "misspelt method": ("old.done.contans(w)", "a Set[Worker] has no 'contans'"),
    "misspelt method with a neighbour": ("old.done.inclding(w) == old.done", "did you mean 'including'?"),
    # names
    "misspelt variable": ("old.lvel == 1", "there is no variable 'lvel'; did you mean 'level'?"),
    "undeclared variable": ("old.colour == 1", "there is no variable 'colour'"),
    "update of an undeclared variable": ("new.weigth == 1", "did you mean 'weight'?"),
    # definitions
    "too few arguments": ("reached(old)", "reached takes 2 arguments, (s, n), not 1"),
    "too many arguments": ("reached(old, old.level, w)", "reached takes 2 arguments, (s, n), not 3"),
    "argument of the wrong type": ("reached(old, old.weight)", "a Level, not old.weight: Weight"),
    "no state": ("reached(old.level, old.level)", "reached takes the state as its first argument"),
    "when of a Python value": ("when(True, old.flag, old.flag)", "when(condition, a, b)"),
    # updates
    "new in a guard": ("new.level > old.level", "new.x == e or new.x[i] == e"),
    "new on the right": ("old.level == new.level", "new.x == e or new.x[i] == e"),
    "new in a quantifier": ("forall(new.busy[v] for v in Worker.all())", "new.x == e or new.x[i] == e"),
    "new in a definition": ("reached(new, old.level)", "new.x == e or new.x[i] == e"),
    "new computed from new": ("new.level == new.level + 1", "computed from old only"),
    "two updates": ("~new.flag, new.flag", "updates 'flag' twice"),
    "two keys": ("new.busy[w], ~new.busy[w]", "old.busy.put(i, a).put(j, b)"),
    "update of the wrong type": ("new.level == old.weight", "old.weight is a Weight, not the Level"),
    # conjuncts
    "a conjunct that is no condition": ("old.level", "is old.level, not a condition"),
}


STATEMENTS = {
    "if": (
        prop("if s.flag:  # here", "    return s.flag", "return s.flag"),
        "when(c, a, b) for a value, or one action per case, instead of `if`",
    ),
    "while": (prop("while s.flag:  # here", "    pass", "return s.flag"), "instead of `if`"),
    "assert": (prop("assert s.level == 1  # here", "return s.flag"), "@always property"),
    "loop over a set": (
        prop("for w in s.done:  # here", "    pass", "return s.flag"),
        "forall(... for x in S)",
    ),
    "assignment": (
        act("new.level = old.level + 1  # here", "return (old.flag,)"),
        "new.level == ... (an update is an equation), not an assignment",
    ),
    "assignment in place": (
        act("new.level += 1  # here", "return (old.flag,)"),
        "new.level == ... (an update is an equation), not an assignment",
    ),
    "assignment to a key": (
        act("new.busy[w] = Bool.true  # here", "return (old.flag,)"),
        "new.x[i] == e (an update is an equation), not an assignment",
    ),
    "assignment to a misspelt variable": (
        act("new.levle = old.level + 1  # here", "return (old.flag,)"),
        "there is no variable 'levle'; did you mean 'level'?",
    ),
    "one conjunct without a comma": (
        act("return (", "    new.level == 1  # here", ")"),
        "return (a, b) or (a,), not a Bool",
    ),
    "no return": (
        lines("@action", "def act(old: State, new: State) -> Step:  # here", "    new.level == 1"),
        "return (a, b) or (a,), not nothing",
    ),
    "a list of conjuncts": (
        lines("@action", "def act(old: State, new: State) -> Step:  # here", "    return [new.level == 1]"),
        "return (a, b) or (a,), not a list",
    ),
    "a step that is not unpacked": (
        lines(
            "@action",
            "def act(old: State, new: State) -> Step:  # here",
            "    return (old.flag, (new.level == 1, new.flag))",
        ),
        "unpack a step with *",
    ),
    "a parameter without a type": (
        lines("@action", "def act(old: State, new: State, w) -> Step:  # here", "    return (new.busy[w],)"),
        "parameter 'w' of act needs a type",
    ),
    "a parameter of a foreign type": (
        lines(
            "@action",
            "def act(old: State, new: State, n: int) -> Step:  # here",
            "    return (new.level == n,)",
        ),
        "<class 'int'> is not a type of the language",
    ),
    "a parameter without a range": (
        lines(
            "@action",
            "def act(old: State, new: State, n: Count) -> Step:  # here",
            "    return (new.level == n,)",
        ),
        "'n' is chosen among few",
    ),
    "a parameter before the states": (
        lines(
            "@action",
            "def act(w: Worker, old: State, new: State) -> Step:  # here",
            "    return (new.busy[w],)",
        ),
        "act takes old and new first",
    ),
    "a definition of a Python value": (
        lines("@define", "def nothing(s: State) -> Bool:  # here", "    s.flag"),
        "a definition returns one symbolic value, not None",
    ),
    "a definition of two states": (
        lines("@define", "def grows(a: State, b: State) -> Bool:  # here", "    return a.level < b.level"),
        "grows takes one state first",
    ),
    "a property of a number": (
        lines("@always", "def high(s: State) -> Bool:  # here", "    return s.level"),
        "high returns a condition, not old.level",
    ),
    "a property with parameters": (
        lines("@always", "def high(s: State, w: Worker) -> Bool:  # here", "    return s.busy[w]"),
        "high takes one state and nothing else",
    ),
    "a step property of one state": (
        lines("@step", "def grows(s: State) -> Bool:  # here", "    return s.flag"),
        "grows takes old and new",
    ),
    "an initial condition with a guard": (
        lines(
            "@initial",
            "def init(new: State) -> Step:",
            "    return (",
            "        new.level == 0,",
            "        Bool.true | Bool.false,  # here",
            "    )",
        ),
        "new.x == value, once for every variable",
    ),
    "an initial condition for one key": (
        lines("@initial", "def init(new: State, w: Worker) -> Step:  # here", "    return (new.busy[w],)"),
        "new.busy == Map.build(...)",
    ),
    "an initial condition that leaves one out": (
        lines(
            "@initial",
            "def init(new: State) -> Step:  # here",
            "    return (new.level == 0,)",
            'Design("d", "d", State, init, (), ())',
        ),
        "the initial condition leaves out flag, weight",
    ),
    "a variable without a meaning": (
        lines("class Other(Struct):  # here", "    level: Level"),
        'say what level means: level: ... = var("...")',
    ),
    "a variable without a type": (
        lines("class Other(Struct):  # here", '    level = var("A level.")'),
        "variable 'level' needs a type",
    ),
    "a variable without a range": (
        lines("class Other(Struct):  # here", '    level: Count = var("A level.")'),
        "'level' needs a range: class Level(Number, high=...)",
    ),
    "a set of sets": (
        lines("class Other(Struct):  # here", '    level: Set[Set[Worker]] = var("A level.")'),
        "a Maybe, Set or Seq is of plain values",
    ),
    "a sequence of a sort": (
        lines(
            "class Other(Struct):",
            '    line: Seq[Level, Worker] = var("A line.")',
            "@always",
            "def promise(s: Other) -> Bool:",
            "    return s.line[0] == s.line[1]  # here",
        ),
        "use a number type",
    ),
    "a choice without members": ("\nclass Other(Choice):  # here\n    pass\n", 'NAME: ClassVar["Other"]'),
    "a default out of bounds": (
        'bound("many", "How many.", default=9, high=3)  # here',
        "the default of many is 9, outside of 0..3",
    ),
    "a setting out of order": (
        'setting("how", "How.", values={"go": Light.GREEN, "stop": Light.RED}, default="go")  # here',
        "in this order: RED, GREEN",
    ),
}


def refused(source: str, folder: Path) -> tuple[ModelError, Path, int]:
    path = write(PRELUDE + source, folder)
    lines = path.read_text(encoding="utf-8").splitlines()
    with pytest.raises(ModelError) as caught:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "model"})
    return caught.value, path, next(n for n, line in enumerate(lines, 1) if line.endswith("# here"))


def check(source: str, spelling: str, folder: Path) -> None:
    error, path, line = refused(source, folder)
    assert (error.where.file, error.where.line) == (str(path), line), error
    assert str(error).startswith(f"{path.name}:{line}: ")
    assert spelling in str(error)


@pytest.mark.parametrize("mistake", GUARDS)
def test_a_mistake_in_a_conjunct_is_refused_where_it_stands(mistake: str, tmp_path: Path) -> None:
    condition, spelling = GUARDS[mistake]
    check(guard(condition), spelling, tmp_path)


@pytest.mark.parametrize("mistake", STATEMENTS)
def test_a_mistake_in_a_declaration_is_refused_where_it_stands(mistake: str, tmp_path: Path) -> None:
    source, spelling = STATEMENTS[mistake]
    check(source, spelling, tmp_path)


def test_the_model_without_a_mistake_is_accepted(tmp_path: Path) -> None:
    path = write(PRELUDE + guard("(old.level == 1) & old.busy[w]"), tmp_path)
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "model"})
