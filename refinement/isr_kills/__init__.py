"""The kill matrix: which planted bug is found by whom.

A bug is a field of the cores' design (`isr_broker.designs.PLANTED`) and a variation of the model (`isr_planted`), under
one name. `layers` has six ways to find one, `matrix` says where each of them looks, runs them, and writes the table in
docs/conformance.md; `historic` does the same for the designs of Kafka's history in the simulator.
"""

from isr_kills.historic import HISTORIC, Historic, historic_table, ran, ran_fixed, seed_of
from isr_kills.layers import Found, Layer
from isr_kills.matrix import PLANS, found_again, kills, summary, table, text

__all__ = [
    "HISTORIC",
    "PLANS",
    "Found",
    "Historic",
    "Layer",
    "found_again",
    "historic_table",
    "kills",
    "ran",
    "ran_fixed",
    "seed_of",
    "summary",
    "table",
    "text",
]
