"""A property graph for graphviz: promises in ovals, conjuncts in boxes, an arrow from what implies to what follows."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from isr_check.smt.property_graph import PropertyGraph

ENDINGS = (".svg", ".pdf", ".png", ".dot")


class _Source(Protocol):
    def pipe(self, format: str) -> bytes: ...


class _Graphviz(Protocol):
    ExecutableNotFound: type[Exception]

    def Source(self, source: str) -> _Source: ...


class NotDrawn(Exception):
    """The picture was not drawn: one sentence says why, and whether there is a DOT file instead."""


def dot(graph: PropertyGraph) -> str:
    """The graph in the language DOT. Dashed lines meet at a point where several properties imply another together."""
    lines = ["digraph properties {", "  rankdir=TB; node [fontname=Helvetica, fontsize=11]; edge [arrowsize=0.7];"]
    others = {n for group in graph.alike.values() for n in group[1:]}
    for name in dict.fromkeys((*graph.promises, *graph.conjuncts)):
        if name in others:
            continue
        shape = "oval, style=filled, fillcolor=lightyellow" if name in graph.promises else "box"
        label = "\\n= ".join(graph.alike.get(name, (name,)))
        lines.append(f'  "{name}" [label="{label}", tooltip="{_quote(graph.summaries.get(name, ""))}", shape={shape}];')
    lines += [f'  "{a}" -> "{e.target}";' for e in graph.alone for a in e.sources]
    for i, e in enumerate(graph.together):
        if len(e.sources) == 1:
            lines.append(f'  "{e.sources[0]}" -> "{e.target}";')
            continue
        lines.append(f'  "and{i}" [shape=point];')
        lines += [f'  "{a}" -> "and{i}" [style=dashed, arrowhead=none];' for a in e.sources]
        lines.append(f'  "and{i}" -> "{e.target}" [style=dashed];')
    return "\n".join([*lines, "}", ""])


def _quote(sentence: str) -> str:
    return sentence.replace("\\", "\\\\").replace('"', '\\"')


def draw(graph: PropertyGraph, path: Path) -> Path:
    """Write the picture, or for a name ending in .dot its description.

    Raises NotDrawn if graphviz is missing (then only the description is written), or for any other ending.
    """
    if path.suffix == ".dot":
        path.write_text(dot(graph), encoding="utf-8")
        return path
    beside = path.with_suffix(".dot")
    if path.suffix not in ENDINGS:
        raise NotDrawn(f"a graph ends in {', '.join(ENDINGS)}, not in '{path.suffix}'")
    try:
        graphviz = cast("_Graphviz", import_module("graphviz"))
    except ImportError:
        beside.write_text(dot(graph), encoding="utf-8")
        raise NotDrawn(f"{beside} is written, but not drawn: graphviz from PyPI is not installed") from None
    try:
        picture = graphviz.Source(dot(graph)).pipe(path.suffix[1:])
    except graphviz.ExecutableNotFound:
        beside.write_text(dot(graph), encoding="utf-8")
        raise NotDrawn(
            f"{beside} is written, but not drawn: there is no program dot (Debian: apt-get install graphviz)"
        ) from None
    path.write_bytes(picture)
    return path
