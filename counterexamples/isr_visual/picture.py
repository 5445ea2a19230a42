"""The scene as an SVG file without a browser: the page's own `script/scene.js`, evaluated here.

The drawing is stated once, in JavaScript, because the page draws states that nobody has seen yet: a reader may take any
step that the model allows. It comes out as data, of which this module makes elements.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast
from xml.etree.ElementTree import Element

from isr_trace.diff import changes, expression
from isr_trace.trace import Trace, TraceError
from isr_visual.roles import roles
from isr_visual.svg import alone, element

if TYPE_CHECKING:
    from py_mini_racer import MiniRacer

SCRIPT = Path(__file__).parent / "script"
DRAWING = ("values.js", "roles.js", "scene.js")
"""What the scene is drawn by, and all of the page's script that needs no page."""

WIDTH = 760
NO_LOGS = "this trace has no logs of replicas to draw; --html shows any trace, and --mermaid its steps"
DRAW_FUNCTION = "(given) => { Scene.drawn = 0; return JSON.stringify(sceneAmong(...JSON.parse(given))); }"


def picture(trace: Trace, index: int, width: int = WIDTH) -> str:
    """The text of an SVG file; TraceError for a state without logs."""
    drawn = drawing(trace, index, width)
    if drawn is None:
        raise TraceError(NO_LOGS)
    return alone(drawn)


def drawing(trace: Trace, index: int, width: int = WIDTH) -> Element | None:
    """The scene as an element; None for a state without logs."""
    states = [{name: expression(trace, i, name) for name in s} for i, s in enumerate(trace.states)]
    found = changes(trace, index) if index else []
    told = [{"path": c.path, "before": c.before, "after": c.after} for c in found]
    given = json.dumps([roles(), states, index, told, width])
    drawn = json.loads(_worker().submit(_call_engine, given).result())
    return _element(drawn) if drawn is not None else None


def _call_engine(arguments: str) -> str:
    return cast("str", _engine().call("drawn", arguments))


@cache
def _worker() -> ThreadPoolExecutor:
    """A thread of its own: the engine does not work where an event loop of somebody else runs."""
    return ThreadPoolExecutor(1, "scene")


@cache
def _engine() -> MiniRacer:
    from py_mini_racer import MiniRacer

    engine = MiniRacer()
    engine.eval(
        "".join((SCRIPT / name).read_text(encoding="utf-8") for name in DRAWING) + f"\nconst drawn = {DRAW_FUNCTION};"
    )
    return engine


def _element(shape: object) -> Element:
    given = cast("dict[str, object]", shape)
    parts = [part if isinstance(part, str) else _element(part) for part in cast("list[object]", given["parts"])]
    return element(str(given["tag"]), cast("dict[str, str | float | None]", given["attributes"]), *parts)
