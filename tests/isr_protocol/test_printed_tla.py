"""docs/kip-966.tla is today's design as `insync export kip-966 --tla` writes it.

Without it the printed protocol would be one that the model had once. After a change of the model, print it again:

    INSYNC_REWRITE=1 .venv/bin/python -m pytest tests/isr_protocol/test_printed_tla.py
"""

from pathlib import Path

from tests.support.expected import rewriting

from isr_check.export import tla
from isr_model import KIP_966

PRINTED = Path(__file__).resolve().parents[2] / "docs" / "kip-966.tla"


def test_the_printed_protocol_is_the_model() -> None:
    if rewriting():
        PRINTED.write_text(tla(KIP_966), encoding="utf-8")
    assert PRINTED.read_text(encoding="utf-8") == tla(KIP_966)
