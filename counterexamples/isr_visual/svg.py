"""SVG elements, and a drawing as a file of its own: with the page's style, its colours written into it.

A viewer that knows light and dark shows the one that its reader prefers; any other shows the light one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias
from xml.etree.ElementTree import Element, tostring

STYLE = Path(__file__).parent / "style"
NAMESPACE = "http://www.w3.org/2000/svg"
COLOURS, LOOKS = "page.css", "scene.css"
MARGIN = 18

Part: TypeAlias = Element | str | None
Attributes: TypeAlias = Mapping[str, str | float | None]


def element(tag: str, attributes: Attributes, *parts: Part | Iterable[Part]) -> Element:
    """An element with its attributes and parts, of which None is left out."""
    node = Element(tag, {name: number(value) for name, value in attributes.items() if value is not None})
    for part in _flat(parts):
        if isinstance(part, Element):
            node.append(part)
        elif part is not None and len(node):
            node[-1].tail = (node[-1].tail or "") + part
        elif part is not None:
            node.text = (node.text or "") + part
    return node


def _flat(parts: Iterable[Part | Iterable[Part]]) -> Iterator[Part]:
    for part in parts:
        if part is None or isinstance(part, str | Element):
            yield part
        else:
            yield from part


def number(value: str | float) -> str:
    """As JavaScript writes it: no point where there is nothing behind it."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def alone(drawing: Element) -> str:
    """The text of a file that is nothing but the drawing, on a ground, and with its style."""
    width, height = (float(drawing.attrib[name]) + 2 * MARGIN for name in ("width", "height"))
    size = {"width": number(width), "height": number(height)}
    drawing.attrib |= {"xmlns": NAMESPACE, "viewBox": f"{-MARGIN} {-MARGIN} {number(width)} {number(height)}", **size}
    drawing.insert(0, element("rect", {"x": -MARGIN, "y": -MARGIN, **size, "class": "ground"}))
    drawing.insert(0, element("style", {}, _style()))
    return tostring(drawing, encoding="unicode") + "\n"


def _style() -> str:
    """The rules of the scene in light, then what is another colour in the dark."""
    light, dark = _palettes((STYLE / COLOURS).read_text(encoding="utf-8"))
    rules = [(".ground", "fill: var(--surface)"), *_rules((STYLE / LOOKS).read_text(encoding="utf-8"))]
    coloured = [(selector, "; ".join(d for d in body.split("; ") if "var(" in d)) for selector, body in rules]
    return f"{_rules_text(rules, light)}@media (prefers-color-scheme: dark) {{\n{_rules_text(coloured, dark)}}}\n"


def _rules(text: str) -> list[tuple[str, str]]:
    bare = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return [(s.strip(), " ".join(body.split()).rstrip("; ")) for s, body in re.findall(r"([^{}]+)\{([^{}]*)\}", bare)]


def _rules_text(rules: Iterable[tuple[str, str]], colours: Mapping[str, str]) -> str:
    filled = ((s, re.sub(r"var\((--[\w-]+)\)", lambda m: colours[m[1]], body)) for s, body in rules if body)
    return "".join(f"{selector} {{ {body} }}\n" for selector, body in filled)


def _palettes(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """The variables of the page in light and in the dark, as its style sheet sets them."""
    root = re.search(r":root \{(.*?)\}", text, re.DOTALL)
    assert root is not None
    both: dict[str, str] = dict(re.findall(r"(--[\w-]+): ([^;]+);", root[1]))
    pairs = {name: re.fullmatch(r"light-dark\((.+), (.+)\)", value) for name, value in both.items()}
    light, dark = ({n: pair[i] if (pair := pairs[n]) else value for n, value in both.items()} for i in (1, 2))
    return light, dark
