"""A rejection as a pytest file: the lines that are left, and the run that made them if it was simulated."""

from __future__ import annotations

import json
from collections.abc import Iterable

from isr_broker.trace_reader import Life
from isr_validate.simulated_rerun import Rerun
from isr_validate.trace_lines import Level
from isr_validate.verdict import Rejected

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
    done = validate(lives, Level.{level})
    no = done.rejected
    assert no is None, f"{{no.life}}.jsonl:{{no.line}}: {{no.action}}: {{no.why}} {{dict(no.differences)}}"
'''

_RUN = """

def test_the_run_is_a_run_of_the_model() -> None:
    from isr_broker.trace_reader import read
    from isr_sim.tracing import again, traced

    found = again(HEADER)
    assert found is not None
    done = validate(read(traced(*found).notes), Level.{level})
    no = done.rejected
    assert no is None, f"{{no.life}}.jsonl:{{no.line}}: {{no.action}}: {{no.why}} {{dict(no.differences)}}"
"""


def reproduction(lives: Iterable[Life], no: Rejected, level: Level, run: Rerun | None = None) -> str:
    """The text of the file."""
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
    """Each line as a string of Python."""
    said = [dict(life.header), *(dict(event.says) for event in life.events)]
    return "".join(f"        {json.dumps(line, separators=(',', ':')) + chr(10)!r}\n" for line in said)
