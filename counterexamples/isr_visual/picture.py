"""The scene as SVG without a browser: what `templates/scene.js` and `scene_parts.js` draw, element by element.

The page draws states that nobody has seen yet (what else could happen), so it draws for itself; the command line has
no browser. A test holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from isr_trace.diff import Plain
from isr_trace.trace import Trace, TraceError
from isr_visual.picture_logs import CELL_HEIGHT, WIDTH, Drawing, marked, members, patterns
from isr_visual.roles import CONTROLLER, MAIL, SEEN, Mail
from isr_visual.svg import Attributes, Part, alone
from isr_visual.svg import element as s
from isr_visual.svg import number as n

NO_LOGS = "this trace has no logs of replicas to draw; --html shows any trace, and --mermaid its steps"


def picture(trace: Trace, index: int, width: int = WIDTH) -> str:
    """The text of an SVG file; TraceError for a state without logs."""
    drawn = Picture(trace, index, width).draw()
    if drawn is None:
        raise TraceError(NO_LOGS)
    return alone(drawn)


class Message:
    """A message that exists: whose, from whom and to whom, and what it says."""

    def __init__(self, mail: Mail, key: str, picture: Picture) -> None:
        status = picture.at(mail.variable, key)
        question, answer = mail.questions.get(status), mail.answers.get(status)
        self.kind, self.key, self.asks = mail.variable, key, question is not None
        self.text = question or answer or ""
        to = picture.at(mail.to, key) or mail.to
        back = str(picture.now.each("follows", key) or "") if mail.to in picture.state else mail.to
        self.other = to if self.asks else back
        fields = ((label, picture.values(name, key)) for label, name in mail.fields.get(status, {}).items())
        said = ((label, value) for label, value in fields if value is not None and value != "none")
        self.said = [f"{label} {members(map(str, v)) if isinstance(v, tuple) else v}" for label, v in said]


class Picture(Drawing):
    """The whole scene, from the controller down to the clients."""

    def __init__(self, trace: Trace, index: int, width: int = WIDTH) -> None:
        super().__init__(trace, index, width)
        self.messages = list(self._messages())
        self.y: float = 0
        self.middle: dict[str, float] = {}

    def _messages(self) -> Iterator[Message]:
        for mail in MAIL:
            for key in self.now.replicas:
                if self.at(mail.variable, key) in {*mail.questions, *mail.answers}:
                    yield Message(mail, key, self)

    def draw(self) -> Element | None:
        now = self.now
        if not now.replicas:
            return None
        parts = [self.controller(), *[self.replica(r) for r in now.replicas], self.clients()]
        parts += [self.wires()] if self.gutter else []
        label = "; ".join([*map(self.in_words, now.replicas), f"in sync {members(now.many('isr'))}"])
        size: Attributes = {"width": self.width, "height": self.y, "role": "img", "aria-label": label}
        return s("svg", {"class": "scene", "viewBox": f"0 0 {self.width} {n(self.y)}", **size}, patterns(), parts)

    def in_words(self, r: str) -> str:
        what = "is down" if self.now.down(r) else "leads" if self.now.leads(r) else "follows"
        watermark = self.watermark(r)
        known = "unknown" if watermark is None else watermark
        return f"{r} {what}, log [{' '.join(self.now.log(r))}], watermark {known}"

    def controller(self) -> Element | None:
        now = self.now
        if "leader" not in now.found and "isr" not in now.found:
            return None
        y, height = self.y, 72 if self.narrow and "isr" in now.found else 46
        self.y += height + 12
        self.middle[CONTROLLER] = y + height / 2
        leader, epoch = now.found.get("leader"), now.found.get("controller epoch")
        facts = ["no leader" if leader == "none" else f"leader {leader}"] if leader is not None else []
        facts += [f"epoch {epoch}"] if epoch is not None else []
        lit = self.changed("leader") or self.changed("controller epoch")
        lines: list[Part] = [
            s("text", {"x": 16, "y": y + 28, "class": "t-name"}, "Controller"),
            s("text", {"x": 112, "y": y + 28, "class": marked("t-fact", lit)}, "  ·  ".join(facts)),
        ]
        x, chips = (52, y + 40) if self.narrow else (306, y + 12)
        if "isr" in now.found:
            lines.append(s("text", {"x": x - 34, "y": chips + 15, "class": "t-small"}, "ISR"))
            lines += [self.chip(r, x + i * 66, chips) for i, r in enumerate(now.replicas)]
        if elr := now.many("elr"):
            after = x + len(now.replicas) * 66 + 4
            lines.append(s("text", {"x": after, "y": chips + 15, "class": "t-small"}, f"ELR {members(elr)}"))
        return s("g", {}, self.box(y, height, "card-box outer"), lines)

    def box(self, y: float, height: float, kind: str) -> Element:
        size: Attributes = {"width": self.card - 1, "height": height - 1, "rx": 10}
        return s("rect", {"x": 0.5, "y": y + 0.5, **size, "class": kind})

    def chip(self, r: str, x: float, y: float) -> Element:
        inside, eligible, fenced = (r in self.now.many(role) for role in ("isr", "elr", "fenced"))
        lit = self.changed("isr") and self.before is not None and (r in self.before.many("isr")) is not inside
        kind = "in" if inside else "eligible" if eligible else "out"
        about = "in the ISR" if inside else "in the ELR" if eligible else "not in the ISR"
        struck = "line-through" if fenced else None
        where: Attributes = {"text-anchor": "middle", "text-decoration": struck}
        return s(
            "g",
            {"class": marked(f"chip {kind}", lit)},
            s("rect", {"x": x, "y": y, "width": 58, "height": 22, "rx": 11}),
            s("text", {"x": x + 29, "y": y + 15, **where}, r),
            s("title", {}, f"{r} is {about}{', and fenced' if fenced else ''}"),
        )

    def replica(self, r: str) -> Element:
        y, leads, down = self.y, self.now.leads(r) and not self.now.down(r), self.now.down(r)
        log_y = y + (70 if self.narrow else 38)
        parts: list[Part] = [*self.head(r, y, leads, down), *self.log(r, log_y)]
        below = log_y + CELL_HEIGHT + 8
        seen = self.read(SEEN)
        ends = seen.get(r) if leads and isinstance(seen, dict) else None
        if isinstance(ends, dict):
            parts += self.seen_marks(r, ends, log_y + CELL_HEIGHT)
            below += 18
        lines = [self.formula(r, ends)] if leads else []
        lines += [self.letter(m) for m in self.messages if m.key == r]
        for line in lines:
            if line is not None:
                parts.append(s("text", {"x": self.left, "y": below + 12, "class": "t-small"}, line))
                below += 20
        height = below - y + 8
        self.middle[r] = log_y + CELL_HEIGHT / 2
        self.y += height + 12
        box = self.box(y, height, f"card-box{' leads' if leads else ''}{' down' if down else ''}")
        return s("g", {"class": f"replica{' down' if down else ''}"}, box, parts)

    def letter(self, m: Message) -> Element:
        """A message in words, below the log of whose it is."""
        arrow = f"{m.text} → {m.other}" if m.asks else f"{m.other or '?'} → {m.key}: {m.text}"
        said = ", ".join(m.said[: 3 if self.narrow else 5])
        kind = marked(f"mail {m.kind}", f"{m.kind}[{m.key}]" in self.touched)
        return s("tspan", {"class": kind}, arrow, s("tspan", {"class": "quiet"}, f"  {said}"))

    def head(self, r: str, y: float, leads: bool, down: bool) -> list[Element]:
        now, before = self.now, self.before
        deposed = leads and "leader" in now.found and now.found["leader"] != r
        what = "down" if down else "thinks it leads" if deposed else "leader" if leads else "follower"
        fell = self.changed("alive") and before is not None and before.down(r) is not down
        lit = self.changed("follows", r) or self.changed("epoch", r) or fell
        wide = len(what) * 6.4 + 18
        badge = s(
            "g",
            {"class": f"badge {'down' if down else 'leads' if leads else 'follows'}{' deposed' if deposed else ''}"},
            s("rect", {"x": 48, "y": y + 13, "width": wide, "height": 20, "rx": 10}),
            s("text", {"x": 48 + wide / 2, "y": y + 27, "text-anchor": "middle"}, what),
        )
        epoch = now.each("epoch", r)
        facts = [f"epoch {epoch}"] if epoch is not None and not down else []
        facts += ["in sync"] if r in now.many("isr") else ["not in sync"] if "isr" in now.found else []
        x, line = (66 + len(what) * 6.4 + 12, y + 28) if self.narrow else (16, y + 54)
        name = s("text", {"x": 16, "y": y + 28, "class": marked("t-name", lit)}, r)
        return [name, badge, s("text", {"x": x, "y": line, "class": "t-small"}, "  ·  ".join(facts))]

    def formula(self, r: str, ends: Plain | None) -> Element | None:
        """What the leader can count on, with its numbers; not what it made of it, which differs between designs."""
        own, pending = self.now.each("own isr", r), self.now.each("pending isr", r)
        if not isinstance(own, tuple) or not own or not isinstance(ends, dict):
            return None
        group = sorted({*map(str, own), *(map(str, pending) if isinstance(pending, tuple) else ())})
        known = [str(len(self.now.log(r))) if m == r else str(ends.get(m, "")) for m in group]
        known = [end if end.isdecimal() else "0" for end in known]
        lit = self.changed("own isr", r) or self.changed("pending isr", r)
        text = f"min LEO over {members(group)} = min({', '.join(known)}) = {min(map(int, known))}"
        return s("tspan", {"class": marked("rule", lit)}, text)

    # beside and below the replicas

    def clients(self) -> Element | None:
        now, y = self.now, self.y
        if "committed" not in now.found and "acked" not in now.found:
            return None
        committed, log_y, lit = now.many("committed"), y + (40 if self.narrow else 14), self.changed("committed")
        was = self.before.many("committed") if self.before is not None else ()

        def place(o: int) -> Element:
            if o >= len(committed):
                return self.hole("", o, log_y)
            return self.cell(committed[o], o, log_y, "committed", lit and was[o : o + 1] != committed[o : o + 1])

        told = f"acknowledged {members(now.many('acked'))}"
        told += f"  ·  read [{' '.join(now.many('consumed'))}]" if "consumed" in now.found else ""
        beside = self.end + len(told) * 6.2 < self.card
        x, line = (self.end, log_y + 23) if beside else (self.left, log_y + CELL_HEIGHT + 18)
        parts: list[Part] = [s("text", {"x": 16, "y": y + (28 if self.narrow else 37), "class": "t-name"}, "Committed")]
        parts += self.places(log_y, len(committed), place)
        parts.append(
            s(
                "text",
                {"x": x, "y": line, "class": marked("t-small", self.changed("acked") or self.changed("consumed"))},
                told,
            )
        )
        height = log_y + CELL_HEIGHT + 14 + (0 if beside else 20) - y
        self.y += height
        return s("g", {}, self.box(y, height, "card-box outer"), parts)

    def wires(self) -> Element:
        """Messages under way, in a margin of their own, each kind and replica always in the same column."""
        kinds, replicas = [mail.variable for mail in MAIL], list(self.now.replicas)
        count = len(replicas) * len(kinds)
        step = min(26, (self.gutter - 44) / max(1, count - 1))
        return s(
            "g",
            {"class": "wires"},
            [
                self.wire(m, kinds.index(m.kind) * len(replicas) + replicas.index(m.key), step, count)
                for m in self.messages
            ],
        )

    def wire(self, m: Message, slot: int, step: float, count: int) -> Element | None:
        x, edge = self.card + 26 + slot * step, self.card
        start, end = (m.key, m.other) if m.asks else (m.other, m.key)
        if start not in self.middle or end not in self.middle or self.middle[start] == self.middle[end]:
            return None
        off = slot * 3 - count
        a, b = self.middle[start] + off, self.middle[end] + off
        turn = 8 if b > a else -8
        bend = f"Q{n(x)} {n(a)} {n(x)} {n(a + turn)} V{n(b - turn)} Q{n(x)} {n(b)} {n(x - 8)} {n(b)} H{n(edge + 7)}"
        kind = marked(f"wire {m.kind}{'' if m.asks else ' answer'}", f"{m.kind}[{m.key}]" in self.touched)
        return s(
            "g",
            {"class": kind},
            s("path", {"d": f"M{n(edge)} {n(a)} H{n(x - 8)} {bend}"}),
            s("path", {"class": "head", "d": f"M{n(edge + 2)} {n(b)} l8 -4.5 v9 z"}),
            s("circle", {"class": "tail", "cx": edge + 2, "cy": a, "r": 3}),
            s("title", {}, f"{start} to {end}: {m.text}, {', '.join(m.said)}"),
        )
