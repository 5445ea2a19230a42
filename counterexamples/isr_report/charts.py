"""Charts by matplotlib, as SVG text that takes its colours from the page, so that they are right in the dark, too."""

# pyright: reportUnknownMemberType=false
# matplotlib leaves the types of its keyword arguments open

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from io import StringIO

import attrs

INK, QUIET, LINE, ACCENT, BAD, GOOD, WARM = (f"#0{i}0{i}0{i}" for i in range(1, 8))
PLACES = {INK: "ink", QUIET: "quiet", LINE: "line", ACCENT: "accent", BAD: "bad", GOOD: "e2-line", WARM: "e1-line"}
"""A colour that stands for a variable of the page's style sheet."""

MISSING = "matplotlib draws the charts of the report, and it is not installed here: pip install matplotlib"


@attrs.frozen
class Series:
    """Points under one name; `low` and `high` are the ends of their intervals, where there are any."""

    name: str
    colour: str
    x: Sequence[float]
    y: Sequence[float]
    labels: Sequence[str] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    marker: str = "o"
    has_line: bool = False
    offset: tuple[int, int] = (7, 5)


def available() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def chart(
    series: Sequence[Series],
    x: str,
    y: str,
    *,
    size: tuple[float, float] = (6.4, 3.9),
    logs: str = "xy",
    ticks: Sequence[float] = (),
    labels: Sequence[str] = (),
    about: str,
) -> str:
    """An SVG element with a scatter of the series; `labels` stand at the ticks, `about` says in words what is seen."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    with mpl.rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9.5, "svg.hashsalt": "x"}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        for s in series:
            axes.plot(
                s.x,
                s.y,
                linestyle="-" if s.has_line else "",
                marker=s.marker,
                color=s.colour,
                label=s.name,
                markersize=6,
            )
            if s.low:
                below = [a - b for a, b in zip(s.y, s.low, strict=True)]
                above = [b - a for a, b in zip(s.y, s.high, strict=True)]
                axes.errorbar(s.x, s.y, yerr=[below, above], fmt="none", ecolor=s.colour, capsize=4, elinewidth=1.4)
            for px, py, text in zip(s.x, s.y, s.labels, strict=False):
                axes.annotate(
                    text,
                    (px, py),
                    xytext=s.offset,
                    textcoords="offset points",
                    ha="left" if s.offset[0] > 0 else "right",
                    color=INK,
                    fontsize=8.5,
                )
        if "x" in logs:
            axes.set_xscale("log")
        if "y" in logs:
            axes.set_yscale("log")
        axes.set_xlabel(x, color=QUIET)
        axes.set_ylabel(y, color=QUIET)
        axes.grid(visible=True, which="major", color=LINE, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.tick_params(colors=QUIET, which="both", length=0)
        axes.margins(0.16)
        if "x" not in logs:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if ticks:
            axes.set_xticks(ticks, labels or None)
        for side in axes.spines.values():
            side.set_visible(False)
        if len(series) > 1:
            axes.legend(frameon=False, labelcolor=INK, fontsize=9, loc="best")
        drawn = StringIO()
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None})
    return _inlined(drawn.getvalue(), about)


def _inlined(text: str, about: str) -> str:
    """Only the element, without its own size and fonts, in the colours of the page."""
    svg = text[text.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", svg)
    for colour, name in PLACES.items():
        svg = svg.replace(colour, f"var(--{name})")
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{about}"', 1)
    return svg.replace('xlink:href="', 'href="')
