"""The one file: style, script and data in one HTML text that loads nothing and may load nothing.

A policy inside the file forbids every request; the only script that may run is the one whose hash it names.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from isr_visual.document import Document

HERE = Path(__file__).parent
SCRIPT, STYLE = HERE / "script", HERE / "style"
SCRIPTS = (
    "values.js",
    "roles.js",
    "scene.js",
    "model.js",
    "elements.js",
    "watch.js",
    "trace.js",
    "lanes.js",
    "timeline.js",
    "step-panel.js",
    "table.js",
    "explore.js",
    "exports.js",
    "gallery.js",
    "story.js",
    "here.js",
    "link.js",
    "caption.js",
    "promise.js",
    "controls.js",
    "keys.js",
    "panels.js",
    "app.js",
)
STYLES = ("page.css", "scene.css", "views.css", "print.css")
OVERVIEW = "overview.css"


def page(traces: Sequence[tuple[Document, str]], title: str, overview: str = "") -> str:
    """The file of one trace, or of a gallery: documents, each with the text of its ITF file.

    `overview` is HTML that stands above the gallery, and is hidden while a trace is open.
    """
    models = {_key(document["model"]): document["model"] for document, _ in traces if document["model"]}
    table = "".join(f"{json.dumps(key)}: () => {_no_end(text)},\n" for key, text in models.items())
    script = f"const MODELS = {{\n{table}}};\n" + "".join(_text(SCRIPT / name) for name in SCRIPTS)
    parts = {
        "TITLE": escape(title),
        "SCRIPT_HASH": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "OVERVIEW": f'<div id="overview">{overview}</div>' if overview else "",
        "STYLE": "".join(_text(STYLE / name) for name in (*STYLES, *((OVERVIEW,) if overview else ()))),
        "DATA": "\n".join(_data(i, document, itf) for i, (document, itf) in enumerate(traces)),
        "SCRIPT": script,
    }
    text = _text(HERE / "page.html")
    for name, value in parts.items():
        text = text.replace(f"<!--{name}-->", value, 1)
    return text


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _key(model: str) -> str:
    """A name for a model's code, which traces of one design at equal bounds share."""
    return hashlib.sha256(model.encode()).hexdigest()[:12]


def _data(index: int, document: Document, itf: str) -> str:
    """A document and its trace, in script elements that are no scripts; the trace as a string, to the byte."""
    told = {**document, "model": _key(document["model"]) if document["model"] else ""}
    about, states = (_inert(json.dumps(d, ensure_ascii=False, separators=(",", ":"))) for d in (told, itf))
    return (
        f'<script type="application/json" class="document" data-n="{index}">{about}</script>\n'
        f'<script type="application/json" class="itf" data-n="{index}">{states}</script>'
    )


def _no_end(code: str) -> str:
    """Code whose strings no HTML parser takes for the end of its element; an operator stands between spaces."""
    return code.replace("</", "<\\/")


def _inert(text: str) -> str:
    """JSON that no HTML parser takes for the end of its element."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
