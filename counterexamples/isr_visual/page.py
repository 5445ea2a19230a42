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

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = (
    "sha256.js",
    "values.js",
    "elements.js",
    "watch.js",
    "trace.js",
    "scene.js",
    "scene_parts.js",
    "lanes.js",
    "timeline.js",
    "step.js",
    "table.js",
    "branches.js",
    "exports.js",
    "gallery.js",
    "heading.js",
    "app.js",
    "controls.js",
    "start.js",
)
STYLES = ("page.css", "scene.css", "views.css", "print.css")


def page(traces: Sequence[tuple[Document, str]], title: str) -> str:
    """The file of one trace, or of a gallery: documents, each with the text of its ITF file."""
    script = "".join(_template(name) for name in SCRIPTS)
    parts = {
        "TITLE": escape(title),
        "SCRIPT_HASH": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "STYLE": "".join(_template(name) for name in STYLES),
        "DATA": "\n".join(_data(i, document, itf) for i, (document, itf) in enumerate(traces)),
        "SCRIPT": script,
    }
    text = _template("page.html")
    for name, value in parts.items():
        text = text.replace(f"<!--{name}-->", value, 1)
    return text


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _data(index: int, document: Document, itf: str) -> str:
    """A document and its trace, in script elements that are no scripts; the trace as a string, to the byte."""
    about, states = (_inert(json.dumps(d, ensure_ascii=False, separators=(",", ":"))) for d in (document, itf))
    return (
        f'<script type="application/json" class="document" data-n="{index}">{about}</script>\n'
        f'<script type="application/json" class="itf" data-n="{index}">{states}</script>'
    )


def _inert(text: str) -> str:
    """JSON that no HTML parser takes for the end of its element."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
