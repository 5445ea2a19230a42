"""`insync designs`: what each design changes and why, what is expected of it, and its bounds and settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict, cast

import attrs

from insync_cli import options, registry, terminal
from insync_cli.exits import Exit
from insync_cli.families import family_of
from insync_cli.options import Usage, design_name, group, optional_argument
from insync_cli.terminal import Output
from isr_lang import Action, Definition, Design, Node, Value, text, walk
from isr_lang.declare import summary

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLE = """\
insync designs
insync designs kip-966
insync designs --json -"""

MOST = 6
"""At most so many added or missing actions are named; more are counted."""


class ConstantLine(TypedDict):
    name: str
    option: str
    kind: str
    default: Value
    values: list[str] | None
    low: int | None
    high: int | None
    doc: str


class PropertyLine(TypedDict):
    name: str
    kind: str
    expected: str | None
    doc: str


class ActionLine(TypedDict):
    name: str
    function: str
    guards: list[str]
    doc: str


class DesignLine(TypedDict):
    """What the list of designs says of one."""

    name: str
    summary: str
    based_on: str | None
    because: str
    changes: list[str]
    constants: list[ConstantLine]
    properties: list[PropertyLine]


class DesignEntry(DesignLine):
    """All of a design."""

    model_hash: str
    actions: list[ActionLine]


USAGE = Usage("designs", "The designs, or one of them in detail.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    design: str | None = optional_argument("DESIGN", "its actions, properties, bounds and settings", design_name)
    own: options.OwnDesigns = group(options.OwnDesigns)
    output: Output = group(Output)


def run(argv: Sequence[str]) -> int:
    given = options.read_options(Options, USAGE, argv)
    name, output = given.design, given.output
    designs = [registry.design_named(name)] if name else list(registry.designs().values())
    if output.json is not None:
        output.write({"schema": "insync/designs/1", "designs": [entry(d) for d in designs]})
    if output.for_people and name:
        print_design(output.console(), entry(designs[0]))
    elif output.for_people:
        print_all(output.console(), designs)
    return Exit.HOLDS


def listed_base(design: Design) -> Design | None:
    """The nearest design it was made from that has a name on the command line."""
    base = design.based_on
    while base is not None and base.name not in registry.designs():
        base = base.based_on
    return base


def changes(design: Design) -> list[str]:
    """How a design differs from the one it was made from, an action or a promise at a time."""
    base = listed_base(design)
    if base is None:
        return []
    mine, theirs = ({a.name: a for a in d.actions} for d in (design, base))
    both = [n for n in mine if n in theirs]
    unchanged_names = [n for n in both if mine[n].function == theirs[n].function]
    sentences = [f"{n} is {mine[n].function}" for n in both if n not in unchanged_names]
    for word, names in (
        ("adds", [n for n in mine if n not in theirs]),
        ("lacks", [n for n in theirs if n not in mine]),
    ):
        sentences += [f"{word} {', '.join(names) if len(names) <= MOST else f'{len(names)} actions'}"] if names else []
    rules, old_rules = rules_of([mine[n] for n in unchanged_names]), rules_of([theirs[n] for n in unchanged_names])
    new, gone = (", ".join(n for n in a if n not in b) for a, b in ((rules, old_rules), (old_rules, rules)))
    if new or gone:
        sentences.append(f"rule {new or 'none'}" + (f" instead of {gone}" if gone else ""))
    table = {c.name: c for c in design.constants()}
    for name, value in design.defaults.items():
        if name in table and value != base.defaults.get(name, table[name].default):
            sentences.append(f"{table[name].option} {options.value_text(value)}")
    return sentences


def rules_of(actions: Sequence[Action]) -> list[str]:
    """The names of the definitions that the actions call, directly or through another definition."""
    rule_names: dict[str, None] = {}

    def visit(node: Node) -> None:
        for n in walk(node):
            if n.op == "call":
                definition = cast("Definition", n.attr[0])
                if definition.name not in rule_names:
                    rule_names[definition.name] = None
                    visit(definition.body)

    for action in actions:
        for node in (*(g.condition for g in action.guards), *(u.value for u in action.updates)):
            visit(node)
    return list(rule_names)


def line(design: Design) -> DesignLine:
    return DesignLine(
        name=design.name,
        summary=design.summary,
        based_on=base.name if (base := listed_base(design)) else None,
        because=design.because,
        changes=changes(design),
        constants=[
            ConstantLine(
                name=c.name,
                option=c.option,
                kind="setting" if c.names else "budget" if c.budget else "bound",
                default=design.defaults.get(c.name, c.default),
                values=list(c.names) or None,
                low=None if c.names else c.low,
                high=None if c.names else c.high,
                doc=summary(c.doc),
            )
            for c in design.constants()
        ],
        properties=[
            PropertyLine(name=p.name, kind=p.kind, expected=design.expected.get(p.name), doc=p.doc)
            for p in design.properties
        ],
    )


def entry(design: Design) -> DesignEntry:
    return DesignEntry(
        **line(design),
        model_hash=design.model_hash(),
        actions=[
            ActionLine(name=a.name, function=a.function, guards=[text(g.condition) for g in a.guards], doc=a.doc)
            for a in design.actions
        ],
    )


def print_all(out: Console, designs: Sequence[Design]) -> None:
    """The designs by family, and after those of each what can be set."""
    for family in dict.fromkeys(map(family_of, designs)):
        if family.subject:
            out.print(family.subject, style="bold underline", end="\n\n")
        print_family(out, [line(d) for d in designs if family_of(d) is family])
    out.print("The details of one: insync designs DESIGN")


def print_family(out: Console, entries: Sequence[DesignLine]) -> None:
    """Each design of a family, and then the defaults of all."""
    for e in entries:
        out.print(e["name"], style="bold", end="")
        out.print(f": {e['summary']}", soft_wrap=True)
        lines = [f"{e['based_on']}, but {'; '.join(e['changes']) or 'no action differs'}"] if e["based_on"] else []
        lines += [f"because {e['because']}"] if e["because"] else []
        broken = [f"{p['name']} ({p['expected']})" for p in e["properties"] if p["expected"] is not None]
        lines += [f"expected to fail at the defaults: {'; '.join(broken)}"] if broken else []
        for line in lines:
            terminal.print_wrapped(out, line, 2)
        out.print()
    out.print("Every other promise is expected to hold at the defaults, which are\n")
    options_of = {c["name"]: c for e in entries for c in e["constants"]}
    rows = [(c["option"], *default_text(c["name"], entries), c["doc"]) for c in options_of.values()]
    terminal.print_table(out, ("option", "default", "", ""), rows)
    out.print()


def default_text(name: str, entries: Sequence[DesignLine]) -> tuple[str, str]:
    """The default that most designs share, and the designs that have another."""
    own = {e["name"]: options.value_text(c["default"]) for e in entries for c in e["constants"] if c["name"] == name}
    usual = max(own.values(), key=list(own.values()).count)
    others = {value: [d for d, v in own.items() if v == value] for value in own.values() if value != usual}
    shown = (f"{value} for {d[0]}" + (f" and {len(d) - 1} more" if d[1:] else "") for value, d in others.items())
    return usual, ", ".join(shown)


def print_design(out: Console, e: DesignEntry) -> None:
    out.print(f"{e['name']}: {e['summary']}", style="bold")
    if e["based_on"]:
        changed = "; ".join(e["changes"]) or "no action differs"
        terminal.print_wrapped(out, f"{e['based_on']}, but {changed}", 2)
    if e["because"]:
        terminal.print_wrapped(out, f"because {e['because']}", 2)
    out.print(f"  model {e['model_hash']}")
    for title, setting in (("Bounds and fault budgets", False), ("Settings", True)):
        chosen = [c for c in e["constants"] if (c["kind"] == "setting") is setting]
        if chosen:
            out.print(f"\n{title}", style="bold")
            terminal.print_table(out, ("option", "default", "", ""), [constant_row(c) for c in chosen])
    out.print("\nProperties", style="bold")
    rows = [(p["name"], p["kind"], property_text(p)) for p in e["properties"]]
    terminal.print_table(out, ("property", "kind", ""), rows)
    out.print("\nActions", style="bold")
    for a in e["actions"]:
        out.print(f"  {a['name']}" + (f" = {a['function']}" if a["function"] != a["name"] else ""))
        for line in terminal.paragraphs(a["doc"]).splitlines():
            terminal.print_wrapped(out, line, 6)


def constant_row(c: ConstantLine) -> tuple[str, str, str, str]:
    extent = "|".join(c["values"]) if c["values"] else f"{c['low']}..{c['high']}"
    return c["option"], options.value_text(c["default"]), extent, c["doc"]


def property_text(p: PropertyLine) -> str:
    return (f"Expected to fail: {p['expected']}.\n" if p["expected"] else "") + terminal.paragraphs(p["doc"])
