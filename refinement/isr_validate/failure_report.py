"""A rejection as one HTML page, as a sequence diagram of the last messages, and as a pytest file that repeats it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape

import attrs

from isr_broker.snapshot import Json
from isr_broker.trace_reader import BadTrace, Event, Life, in_order
from isr_validate.reduction import ReducedRun, ReducedTrace
from isr_validate.trace_lines import Level
from isr_validate.trace_values import SentMessage, sent_messages
from isr_validate.verdict import Rejection, Validation

MESSAGE_COUNT = 20
_LANE = 150
_STEP = 34


@attrs.frozen
class Message:
    """A message of the diagram; `is_received` if it was received before the rejected line."""

    source: str
    to: str
    kind: str
    says: str
    is_received: bool


def last_messages(lives: Iterable[Life], no: Rejection, count: int = MESSAGE_COUNT) -> list[Message]:
    """The last `count` messages that were sent up to and including the rejected line."""
    messages: list[SentMessage] = []
    received_ids: set[str] = set()
    for event in _until(lives, no):
        node = event.life.partition(".")[0]
        messages += sent_messages(node, event.says.get("sent"))
        if "received" in event.says:
            received_ids.add(str(event.says["received"]))
    return [Message(m.source, m.to, m.kind, message_text(m), m.id in received_ids) for m in messages[-count:]]


def _until(lives: Iterable[Life], no: Rejection) -> list[Event]:
    events: list[Event] = []
    try:
        for event in in_order(list(lives)):
            events.append(event)
            if (event.life, event.number) == (no.life, no.line - 1):
                break
    except BadTrace:
        pass
    return events


_MESSAGE_FIELDS = (
    "offset",
    "leader_epoch",
    "high_watermark",
    "partition_epoch",
    "isr",
    "error",
    "diverging",
    "broker_epoch",
)


def message_text(mail: SentMessage) -> str:
    """The fields of a message that matter to replication, in one line."""
    said = [f"{n}={_short(mail.says[n])}" for n in _MESSAGE_FIELDS if mail.says.get(n) not in (None, "NONE")]
    return f"{mail.id} " + " ".join(said)


def _short(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))


def lifelines(messages: Sequence[Message]) -> list[str]:
    """The nodes between which the messages are sent, brokers first."""
    return sorted({n for m in messages for n in (m.source, m.to)}, key=lambda n: (not n.isdigit(), n))


def sequence_text(messages: Sequence[Message], width: int = 13) -> list[str]:
    """The diagram as text: a column for each node, an arrow for each message, dashed if it was not received."""
    nodes = lifelines(messages)
    lines = ["".join(node.center(width) for node in nodes)]
    middle = {node: n * width + width // 2 for n, node in enumerate(nodes)}
    for message in messages:
        row = list(" " * (width * len(nodes)))
        for place in middle.values():
            row[place] = "|"
        a, b = middle[message.source], middle[message.to]
        low, high = min(a, b), max(a, b)
        for n in range(low + 1, high):
            row[n] = "-" if message.is_received or n % 2 else " "
        if a != b:
            row[b + (-1 if b > a else 1)] = ">" if b > a else "<"
        lines.append(f"{''.join(row)}  {message.kind} {message.says}")
    return lines


def sequence_svg(messages: Sequence[Message]) -> str:
    """The diagram as SVG."""
    nodes = lifelines(messages)
    place = {node: 70 + n * _LANE for n, node in enumerate(nodes)}
    height, wide = 60 + _STEP * len(messages), 140 + _LANE * len(nodes) + 420
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {height}" width="{wide}" role="img" '
        'aria-label="the last messages">',
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z"/></marker></defs>',
    ]
    for node, x in place.items():
        parts.append(f'<text x="{x}" y="20" text-anchor="middle">{escape(node)}</text>')
        parts.append(f'<line x1="{x}" y1="28" x2="{x}" y2="{height}" class="lane"/>')
    for n, message in enumerate(messages):
        y, a, b = 50 + n * _STEP, place[message.source], place[message.to]
        dashed = "" if message.is_received else ' stroke-dasharray="5 4"'
        label = f"{message.kind} {message.says}"
        parts.append(f'<line x1="{a}" y1="{y}" x2="{b}" y2="{y}" class="arrow" marker-end="url(#head)"{dashed}/>')
        parts.append(f'<text x="{max(place.values()) + 20}" y="{y + 4}" class="said">{escape(label)}</text>')
    return "\n".join([*parts, "</svg>"])


_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#1d2433}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}code,pre,td.code{font:13px/1.45 ui-monospace,monospace}
pre{background:#f4f6f9;padding:.8rem;overflow:auto;border-radius:6px}table{border-collapse:collapse}
td,th{border-bottom:1px solid #dde2ea;padding:.25rem .8rem .25rem 0;text-align:left;vertical-align:top}
.bad{color:#a8071a;font-weight:600}svg{max-width:100%;height:auto}.lane{stroke:#c3cad6}
.arrow{stroke:#1f4e8c;stroke-width:1.5}.said{font:12px ui-monospace,monospace}
@media(prefers-color-scheme:dark){body{background:#14171d;color:#e3e7ee}pre{background:#1d222b}
svg text{fill:#e3e7ee}td,th{border-color:#333b48}.arrow{stroke:#7fb0f5}.bad{color:#ff7875}}"""


def failure_page(validation: Validation, lives: Sequence[Life], reduced: ReducedTrace | None) -> str:
    """The rejection as one HTML page without references to other files."""
    no = validation.rejected
    assert no is not None
    line = next((e for life in lives if life.name == no.life for e in life.events if e.number == no.line - 1), None)
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>insync validate: rejected</title>',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1><code>{escape(no.life)}.jsonl:{no.line}</code>: <span class='bad'>{escape(no.why)}</span></h1>",
        f"<p>Accepted before it: {no.place:,} of {validation.lines:,} events (level {escape(validation.level)}). "
        f"The line is about {escape(no.owner or no.life)}.</p>",
    ]
    if no.differences:
        parts.append("<h2>The nearest state of the model</h2>")
        rows = [(name, model, told) for name, (model, told) in no.differences.items()]
        parts.append(_table(("variable", "in the model", "in the line"), rows))
    if no.table:
        parts.append("<h2>Each action, and its first guard that is false</h2>")
        rows3 = [(g.action, g.guard, "; ".join(g.values)) for g in no.table]
        parts += [_table(("action", "guard", "because"), rows3), f"<p>{escape(no.legend)}</p>"]
    parts += [f"<h2>The last {MESSAGE_COUNT} messages</h2>", sequence_svg(last_messages(lives, no))]
    parts.append(f"<h2>All states that were still possible ({len(no.states)})</h2>")
    parts.append(
        f"<pre>{escape(chr(10).join(no.states) or 'the line is no line of a trace, whatever the state')}</pre>"
    )
    others = [f"{way.why}  {dict(way.differences) or ''}  from {way.state}" for way in no.attempts]
    parts.append(f"<h2>How each of them fails</h2><pre>{escape(chr(10).join(others))}</pre>")
    if line is not None:
        parts.append(f"<h2>The line</h2><pre>{escape(json.dumps(dict(line.says), indent=1))}</pre>")
    if reduced is not None:
        parts.append(f"<h2>Made small: {reduced.lines} of {reduced.before} lines are enough</h2>")
        small = [json.dumps(dict(e.says)) for life in reduced.lives for e in life.events]
        parts.append(f"<details><summary>The lines</summary><pre>{escape(chr(10).join(small))}</pre></details>")
    return "\n".join([*parts, "</body></html>\n"])


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td class=code>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


_HEAD = '''"""{claim}

Written by `insync validate --reproduce`; it fails as long as that is so. Needs insync on the path.
"""

from isr_broker.trace_reader import read_life
from isr_validate import Level, validate

TRACE = {{
{files}
}}


def test_the_lines_are_a_run_of_the_model() -> None:
    lives = [read_life(name, text.encode()) for name, text in TRACE.items()]
    validation = validate(lives, Level.{level})
    no = validation.rejected
    assert no is None, f"{{no.life}}.jsonl:{{no.line}}: {{no.action}}: {{no.why}} {{dict(no.differences)}}"
'''

_RUN = """

def test_the_run_is_a_run_of_the_model() -> None:
    from isr_broker.trace_reader import read_lives
    from isr_sim.traces import again, run_with_traces

    simulation = again(HEADER)
    assert simulation is not None
    validation = validate(read_lives(run_with_traces(*simulation).notes), Level.{level})
    no = validation.rejected
    assert no is None, f"{{no.life}}.jsonl:{{no.line}}: {{no.action}}: {{no.why}} {{dict(no.differences)}}"
"""


def pytest_file(lives: Iterable[Life], no: Rejection, level: Level, run: ReducedRun | None = None) -> str:
    """A pytest file with the lines of the trace, and with the simulated run that made them, if there is one."""
    known = list(lives)
    files = "\n".join(f"    {life.name!r}: (\n{_lines(life)}    )," for life in known)
    claim = f"{no.action} of {no.owner or no.life} is no step of the model: {no.why}."
    text = _HEAD.format(claim=claim.replace("\\", "").replace('"""', ""), files=files, level=level.name)
    if run is not None:
        header = next(dict(life.header) for life in run.lives if life.header)
        kept = {name: header[name] for name in ("settings", "simulation")}
        text += f"\n\nHEADER = {kept!r}\n" + _RUN.format(level=level.name)
    return text


def _lines(life: Life) -> str:
    """The lines of a life as string literals of Python."""
    said = [dict(life.header), *(dict(event.says) for event in life.events)]
    return "".join(f"        {json.dumps(line, separators=(',', ':')) + chr(10)!r}\n" for line in said)
