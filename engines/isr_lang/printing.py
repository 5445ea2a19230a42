"""Expressions in the model's own notation, for coverage, narration, errors and the model's hash."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from isr_lang.design import Design
from isr_lang.nodes import Node
from isr_lang.types import ChoiceType, MapType, MaybeType, NumberType, SeqType, SetType, SortType, Type, position_in


def show(value: object, type: Type) -> str:
    """A value as people write it: r1, {r1, r2}, [m1, m2], none."""
    match type, value:
        case NumberType(), int():
            return str(value)
        case SortType(), int():
            return f"{type.prefix}{value + 1}"
        case ChoiceType(), int():
            return type.members[value].lower()
        case MaybeType(), int():
            return "none" if value == 0 else show(position_in(value) + first(type.of), type.of)
        case SetType(), int():
            members = (show(i + first(type.of), type.of) for i in range(value.bit_length()) if value >> i & 1)
            return "{" + ", ".join(members) + "}"
        case MapType(), tuple():
            values = cast("tuple[object, ...]", value)
            keys = (show(i + first(type.key), type.key) for i in range(len(values)))
            return "(" + ", ".join(f"{k}: {show(v, type.value)}" for k, v in zip(keys, values, strict=True)) + ")"
        case SeqType(), tuple():
            return "[" + ", ".join(show(v, type.of) for v in cast("tuple[object, ...]", value)) + "]"
        case _:
            return str(bool(value)).lower() if isinstance(value, int) else str(value)


def first(type: Type) -> int:
    """The value at position 0 of a scalar type."""
    return type.low if isinstance(type, NumberType) else 0


def _infix(symbol: str, level: int) -> Callable[[Node], tuple[str, int]]:
    def render(node: Node) -> tuple[str, int]:
        left, right = (_text(a, level) for a in node.args)
        return f"{left} {symbol} {right}", level

    return render


def _method(name: str) -> Callable[[Node], tuple[str, int]]:
    return lambda n: (f"{_text(n.args[0], 9)}.{name}({', '.join(text(a) for a in n.args[1:])})", 9)


def _binder(name: str) -> Callable[[Node], tuple[str, int]]:
    def render(node: Node) -> tuple[str, int]:
        rest = "".join(f", or_else={text(a)}" for a in node.args[2:])
        return f"{name}({text(node.args[1])} for {node.attr.name} in {text(node.args[0])}{rest})", 9

    return render


def _negation(node: Node) -> tuple[str, int]:
    inner = node.args[0]
    if inner.op == "equal":
        return _text(inner.args[0], 4) + " != " + _text(inner.args[1], 4), 4
    return "~" + _text(inner, 8), 8


PRINTERS: dict[str, Callable[[Node], tuple[str, int]]] = {
    "literal": lambda n: (show(n.attr, n.type), 9),
    "constant": lambda n: (n.attr.name.upper(), 9),
    "variable": lambda n: (("new." if n.attr[1] else "old.") + n.attr[0], 9),
    "parameter": lambda n: (n.attr, 9),
    "bound": lambda n: (n.attr.name, 9),
    "call": lambda n: (
        f"{n.attr[0].name}{chr(39) if n.attr[1] else ''}({', '.join(text(a) for a in n.args)})",
        9,
    ),
    "not": _negation,
    "and": _infix("&", 3),
    "or": _infix("|", 2),
    "implies": _infix("=>", 1),
    "when": lambda n: (f"when({', '.join(text(a) for a in n.args)})", 9),
    "equal": _infix("==", 4),
    "less": _infix("<", 4),
    "at_most": _infix("<=", 4),
    "plus": _infix("+", 6),
    "minus": _infix("-", 6),
    "some": lambda n: _parts(n.args[0]),
    "or_else": _method("or_else"),
    "has": _method("has"),
    "with": _method("including"),
    "without": _method("excluding"),
    "union": _infix("|", 6),
    "intersection": _infix("&", 6),
    "difference": _infix("-", 6),
    "subset": _infix("<=", 4),
    "size": _method("size"),
    "get": lambda n: (f"{_text(n.args[0], 9)}[{text(n.args[1])}]", 9),
    "put": _method("put"),
    "length": _method("length"),
    "at": lambda n: (f"{_text(n.args[0], 9)}[{text(n.args[1])}]", 9),
    "append": _method("append"),
    "take": _method("take"),
    "prefix": _method("is_prefix_of"),
    "forall": _binder("forall"),
    "exists": _binder("exists"),
    "count": _binder("count"),
    "smallest": _binder("smallest"),
    "largest": _binder("largest"),
    "select": lambda n: (f"{_text(n.args[0], 9)}.where({n.attr.name}: {text(n.args[1])})", 9),
    "build": lambda n: (f"({n.attr.name}: {text(n.args[1])})", 9),
    "every": lambda n: (f"{n.type.of}.all()" if isinstance(n.type, SetType) else "all()", 9),
    "below": lambda n: (f"below({text(n.args[0])})", 9),
}


def _parts(node: Node) -> tuple[str, int]:
    return PRINTERS[node.op](node)


def _text(node: Node, level: int) -> str:
    rendered, own = _parts(node)
    chained = own == level and node.op in ("and", "or", "plus", "union", "intersection")
    return rendered if own > level or own == 9 or chained else f"({rendered})"


def text(node: Node) -> str:
    """The expression as the model could have written it."""
    return _parts(node)[0]


def design_text(design: Design) -> str:
    """The whole meaning of a design as text: the source of its hash."""
    lines = [f"{v.name}: {v.type}" + (f" when {text(v.when)}" if v.when is not None else "") for v in design.variables]
    for t in design.types():
        extent = [text(n) for n in (getattr(t, "size", None), getattr(t, "high", None)) if isinstance(n, Node)]
        lines.append(f"type {t} {getattr(t, 'low', '')} {extent} {getattr(t, 'members', '')}")
    for d in design.definitions():
        lines.append(f"define {d.name}({', '.join(f'{n}: {t}' for n, t in d.parameters)}) = {text(d.body)}")
    for a in (design.initial, *design.actions):
        lines.append(f"action {a.name}({', '.join(f'{n}: {t}' for n, t in a.parameters)})")
        lines += [f"  {text(g.condition)}" for g in a.guards]
        lines += [f"  new.{u.variable}{''.join(f'[{text(n)}]' for n in u.path)} == {text(u.value)}" for u in a.updates]
    for p in design.properties:
        parts = [text(n) if n is not None else "-" for n in (p.when, p.trigger, p.condition)]
        lines.append(f"{p.kind} {p.name} {' ; '.join(parts)} {' '.join(p.fair)}")
        lines += [f"  strongly fair: {' '.join(p.strongly_fair)}"] * bool(p.strongly_fair)
    lines += [f"assume {text(a.condition)}" for a in design.assumptions]
    return "\n".join(lines)
