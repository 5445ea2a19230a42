"""The page: every section made from what was found, put into one file with its style and script."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape

from isr_report import traceability
from isr_report.html import KINDS, TEMPLATES, style
from isr_report.material import Material, claims
from isr_report.matrix import since
from isr_report.sections import conformance, distance, experiments, figures, findings, overview, tradeoffs

CONTENTS = {
    "questions": "Questions",
    "matrix": "Guarantees",
    "together": "Side by side",
    "stories": "Stories",
    "scenes": "Scenes",
    "alternatives": "Alternatives",
    "controls": "Controls",
    "availability": "Availability",
    "tradeoffs": "Trade-offs",
    "experiments": "Experiments",
    "space": "State space",
    "proofs": "Proofs",
    "conformance": "Conformance",
    "traceability": "Traceability",
    "assumptions": "Assumptions",
    "reproduce": "Reproduce",
}


def page(material: Material) -> str:
    """The text of index.html."""
    claim_list = claims(material)
    script = template("report.js")
    parts = {
        "SCRIPT_HASH": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "STYLE": style(),
        "FACTS": findings.facts(material, claim_list),
        "CONTENTS": "".join(f'<a href="#{name}">{says}</a>' for name, says in CONTENTS.items()),
        "QUESTIONS": findings.answers(material),
        "OVERVIEW": overview.overview(material),
        "SIGNS": findings.signs(),
        "MATRIX": findings.grid(material),
        "TOGETHER": findings.together(material.together),
        "STORIES": findings.stories(list(material.stories)),
        "SCENES": findings.scenes(list(material.scenes)),
        "ALTERNATIVES": findings.alternatives(list(material.alternatives)),
        "CONTROLS": findings.controls(material),
        "AVAILABILITY": distance.distances(material) + figures.availability() + tradeoffs.chances(),
        "TRADEOFFS": tradeoffs.waits() + tradeoffs.lagging(),
        "EXPERIMENTS": experiments.section(material.included_reports),
        "SPACE": figures.space(material) + since.section(material.since, material.folder),
        "PROOFS": figures.proofs(material),
        "CONFORMANCE": conformance.section(material.included_reports),
        "TRACEABILITY": traceability.section(material.traceability),
        "ASSUMPTIONS": figures.assumptions(material),
        "REPRODUCE": findings.reproduce(claim_list),
        "FOOTER": f"<p>insync {escape(material.version)}, model {escape(material.model_hash)}</p>",
        "DATA": data(material),
        "SCRIPT": script,
    }
    text = template("report.html")
    for name, value in parts.items():
        text = text.replace(f"<!--{name}-->", value, 1)
    return text


def data(material: Material) -> str:
    """What the script knows: the cells, and what each promise and fault says."""
    matrix = material.matrix
    cells = [
        {
            **{k: cell[k] for k in ("name", "design", "settings", "fault", "distinct", "complete")},
            "run": f"{material.folder}/{cell['run']}",
            "command": " ".join(cell["command"]),
            "promises": [
                {
                    "name": p["name"],
                    "verdict": p["verdict"],
                    "depth": p["depth"],
                    "trace": f"{material.folder}/{p['trace']}" if p["trace"] else None,
                    "page": material.pages.get(p["trace"] or ""),
                }
                for p in cell["promises"]
                if not p["kind"].startswith("sometimes")
            ],
        }
        for cell in matrix["cells"]
    ]
    known = {"cells": cells, "promises": matrix["promises"], "kinds": KINDS}
    known["faults"] = {f["name"]: f["says"] for f in matrix["faults"]}
    return json.dumps(known, ensure_ascii=False).replace("<", "\\u003c")


def claims_text(material: Material) -> str:
    """claims.json: what is claimed, the command that shows it, the verdicts that it must give."""
    listed = [
        {"says": c.says, "command": c.command, "expects": dict(c.expects), "run": c.run} for c in claims(material)
    ]
    return json.dumps({"schema": "insync/claims/1", "claims": listed}, indent=1) + "\n"


def template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
