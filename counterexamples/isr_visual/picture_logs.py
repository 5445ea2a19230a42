"""The logs in the scene as SVG: `templates/scene.js` again, for the command line (see picture.py).

Records are appended here, copied to another log, or committed, the safer the fuller; acknowledged and read are marks on
them. All logs are drawn on one axis of offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from xml.etree.ElementTree import Element

from isr_trace.diff import Plain, changes, expression, plain
from isr_trace.scene import View
from isr_trace.trace import Trace
from isr_visual.roles import MAIL, SEEN
from isr_visual.svg import Attributes, Part
from isr_visual.svg import element as s
from isr_visual.svg import number as n

CELL, CELL_HEIGHT, TONES = 58, 38, 6
WIDTH, NARROW, LEAST, MOST = 760, 560, 330, 860
GUTTER = 112
"""Beside the replicas, for the messages under way."""

STANDING = {
    "committed": "known here to be committed",
    "copied": "copied to another log, not known here to be committed",
    "appended": "in this log only",
}
HATCH = "hatch"
EYE = "q6 -7 12 0 q-6 7 -12 0 z m4.5 0 a1.5 1.5 0 1 0 3 0 a1.5 1.5 0 1 0 -3 0"


def members(names: Iterable[str]) -> str:
    return "{" + ", ".join(names) + "}"


def marked(kind: str, changed: bool) -> str:
    """The class of what the step changed."""
    return f"{kind} lit" if changed else kind


def touched(trace: Trace, index: int) -> set[str]:
    """The variables and cells that the step changed: `log`, `log[r1]`, and the whole path."""
    found = set[str]()
    for change in changes(trace, index) if index else ():
        name, _, rest = change.path.replace(".", "[", 1).partition("[")
        found |= {change.path, name}
        if change.path.startswith(f"{name}[") and "]" in rest:
            found.add(f"{name}[{rest.partition(']')[0]}]")
    return found


def longest_log(trace: Trace) -> int:
    """Of every state, so that all are drawn to one width."""
    views = [View(trace, i) for i in range(len(trace.states))]
    logs = (len(v.log(r)) for v in views for r in v.replicas)
    return max(1, *logs, *(len(v.many("committed")) for v in views))


class Drawing:
    """One state and where its parts are; what the last step changed is marked."""

    def __init__(self, trace: Trace, index: int, width: int = WIDTH) -> None:
        self.state = trace.states[index]
        self.trace, self.index = trace, index
        self.now, self.before = View(trace, index), View(trace, index - 1) if index else None
        self.touched = touched(trace, index)
        self.narrow, self.width = width < NARROW, min(max(width, LEAST), MOST)
        written = any(mail.variable in self.state for mail in MAIL)
        self.gutter = 0 if self.narrow or not written else GUTTER
        self.card, self.left = self.width - self.gutter, 16 if self.narrow else 182
        ends = [len(self.now.log(r)) for r in self.now.replicas]
        end = max(0, *ends, len(self.now.many("committed"))) if ends else 0
        self.room = min(max(longest_log(trace), end), max(2, (self.card - self.left - 62) // CELL))
        self.first = end - self.room + 1 if end > self.room else 0
        self.end = self.left + self.room * CELL + 10

    # what there is

    def read(self, name: str) -> Plain | None:
        value = expression(self.trace, self.index, name) if name in self.state else None
        return plain(value) if value is not None else None

    def values(self, name: str, key: str) -> Plain | None:
        whole = self.read(name)
        return whole.get(key) if isinstance(whole, dict) else None

    def at(self, name: str, key: str) -> str:
        value = self.values(name, key)
        return value if isinstance(value, str) else ""

    def changed(self, role: str, replica: str | None = None) -> bool:
        name = self.now.names.get(role, role)
        return (name if replica is None else f"{name}[{replica}]") in self.touched

    def watermark(self, r: str) -> int | None:
        value = self.now.each("high watermark", r)
        return int(value) if isinstance(value, str) and value.isdecimal() else None

    def x(self, offset: int) -> int:
        return self.left + (max(0, offset - self.first + 1) if self.first else offset) * CELL

    # logs

    def places(self, y: float, count: int, draw: Callable[[int], Element]) -> list[Part]:
        """A place for each offset that is shown, and one for all before."""
        offsets = range(self.first, self.first + self.room - bool(self.first))
        earlier = [self.earlier(min(self.first, count), y)] if self.first and count else []
        return [*earlier, *map(draw, offsets)]

    def earlier(self, count: int, y: float) -> Element:
        said = s("title", {}, f"{count} earlier, for which there is no room")
        where: Attributes = {"text-anchor": "middle", "class": "t-epoch"}
        text = s("text", {"x": self.left + CELL / 2 - 2, "y": y + 22, **where}, f"{count} before")
        return s("g", {"class": "cell hole before"}, outline(self.left, y), text, said)

    def log(self, r: str, y: float) -> list[Part]:
        log, watermark, lit = self.now.log(r), self.watermark(r), self.changed("log", r)
        old = self.before.log(r) if self.before is not None else ()

        def place(o: int) -> Element:
            was = old[o] if o < len(old) else None
            if o >= len(log):
                return self.hole(r, o, y, was if lit else None)
            return self.cell(log[o], o, y, self.standing(r, o, watermark), lit and was != log[o])

        parts = self.places(y, len(log), place)
        if watermark is not None:
            parts.append(self.flag(self.x(watermark) - 3, y, watermark, r))
        return [*parts, s("text", {"x": self.end, "y": y + 23, "class": marked("t-small", lit)}, f"LEO {len(log)}")]

    def standing(self, r: str, o: int, watermark: int | None) -> str:
        """How safe a record is, as far as its replica knows."""
        if watermark is not None and o < watermark:
            return "committed"
        logs = (self.now.log(other) for other in self.now.replicas if other != r)
        return "copied" if any(log[o : o + 1] == self.now.log(r)[o : o + 1] for log in logs) else "appended"

    def cell(self, record: str, o: int, y: float, standing: str, lit: bool) -> Element:
        now, x = self.now, self.x(o)
        written = now.many("written in")
        epoch = written[int(record)] if record.isdecimal() and int(record) < len(written) else None
        acked, consumed = record in now.many("acked"), record in now.many("consumed")
        about = [f"record {record}", f"written in epoch {epoch}" if epoch is not None else "", STANDING[standing]]
        about += ["acknowledged to its producer" if acked else "", "read by a consumer" if consumed else ""]
        size: Attributes = {"width": CELL - 8, "height": CELL_HEIGHT, "rx": 6, "class": "fill"}
        inner: Attributes = {"width": CELL - 10, "height": CELL_HEIGHT - 2, "rx": 5, "class": "hatch"}
        hatch = {"committed": None, "copied": f"url(#{HATCH}-fine)", "appended": f"url(#{HATCH})"}[standing]
        ring: Attributes = {"width": CELL - 2, "height": CELL_HEIGHT + 6, "rx": 8, "class": "ring"}
        middle: Attributes = {"x": x + CELL / 2 - 2, "text-anchor": "middle"}
        tone = int(epoch) % TONES if epoch is not None and epoch.isdecimal() else 0
        seen = f"M{n(x + 6)} {n(y + 9)} {EYE}"
        return s(
            "g",
            {"class": marked(f"cell e{tone} {standing}", lit)},
            s("rect", {"x": x + 2, "y": y, **size}),
            s("rect", {"x": x + 3, "y": y + 1, **inner, "fill": hatch}) if hatch is not None else None,
            s("rect", {"x": x - 1, "y": y - 3, **ring}) if lit else None,
            s("text", {**middle, "y": y + (24 if epoch is None else 17), "class": "t-record"}, record),
            s("text", {**middle, "y": y + 31, "class": "t-epoch"}, f"epoch {epoch}"[:8]) if epoch is not None else None,
            s("path", {"d": f"M{n(x + CELL - 17)} {n(y + 7)} l3 3 l5 -6", "class": "tick"}) if acked else None,
            s("path", {"d": seen, "class": "read"}) if consumed else None,
            s("title", {}, ", ".join(filter(None, about))),
        )

    def expected(self, o: int) -> str | None:
        """What should be at an offset: the committed record, else an acknowledged one that some log has there."""
        committed, acked = self.now.many("committed"), self.now.many("acked")
        if o < len(committed):
            return committed[o]
        there = (self.now.log(r)[o] for r in self.now.replicas if o < len(self.now.log(r)))
        return next((record for record in there if record in acked), None)

    def hole(self, r: str, o: int, y: float, cut: str | None = None) -> Element:
        missing, x = self.expected(o), self.x(o)
        leading = bool(r) and (self.now.found.get("leader") == r or (self.now.leads(r) and not self.now.down(r)))
        gone = missing is not None and leading
        text = f"{cut} cut" if cut is not None else f"no {missing}" if gone else ""
        where: Attributes = {"x": x + CELL / 2 - 2, "y": y + 22, "text-anchor": "middle"}
        return s(
            "g",
            {"class": f"cell hole{' gone' if gone else ''}{' cut' if cut is not None else ''}"},
            outline(x, y),
            s("text", {**where, "class": "t-epoch"}, text) if text else None,
            s("title", {}, f"record {missing} was promised, and is not here") if gone else None,
        )

    def flag(self, x: float, y: float, watermark: int, r: str) -> Element:
        return s(
            "g",
            {"class": marked("flag", self.changed("high watermark", r))},
            s("line", {"x1": x, "y1": y - 12, "x2": x, "y2": y + CELL_HEIGHT + 5}),
            s("text", {"x": x + 5, "y": y - 6}, f"HW {watermark}"),
            s("title", {}, f"{r} knows that all before offset {watermark} is committed"),
        )

    def seen_marks(self, r: str, ends: Mapping[str, Plain], y: float) -> Iterator[Element]:
        at = dict[int, list[str]]()
        for follower, known in ends.items():
            if follower != r and isinstance(known, str) and known.isdecimal():
                at.setdefault(int(known), []).append(follower)
        for end, followers in sorted(at.items()):
            x, names = self.x(end) - 3, ", ".join(followers)
            lit = any(f"{SEEN}[{r}][{f}]" in self.touched for f in followers)
            yield s(
                "g",
                {"class": marked("seen", lit)},
                s("path", {"d": f"M{n(x)} {n(y + 4)} l4 7 h-8 z"}),
                s("text", {"x": x + 8, "y": y + 13}, f"{names}{f' seen at {end}' if end == max(at) else ''}"),
                s("title", {}, f"the leader has seen {names} at offset {end}"),
            )


def outline(x: float, y: float) -> Element:
    return s("rect", {"x": x + 2.5, "y": y + 0.5, "width": CELL - 9, "height": CELL_HEIGHT - 1, "rx": 6})


def patterns() -> Element:
    """Stripes that leave little of a cell's colour, and fine ones that leave most of it."""
    size: Attributes = {"width": 6, "height": 6, "patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}

    def pattern(kind: str) -> Element:
        line: Attributes = {"x1": 0, "y1": 0, "x2": 0, "y2": 6, "class": f"hatch-line{' fine' if kind else ''}"}
        return s("pattern", {"id": HATCH + kind, **size}, s("line", line))

    return s("defs", {}, [pattern(""), pattern("-fine")])
