"""The kill matrix: which planted bug is found by which layer.

A planted bug has one name in the cores (`isr_broker.designs.PLANTED`) and in the model (`planted.bugs`).

Reading order: `layers` (the six layers that look for bugs), `matrix` (where each of them looks, and the table in
docs/kills.md), `historic` (the same in the simulator for the designs of Kafka's history), `crash_points` (the layer
that crashes a log directory before each of its writes), `situations` (what chance does not make).
"""

from isr_kills.historic import HISTORIC, Historic, find_seed, historic_table, run_bug, run_fix
from isr_kills.layers import Detection, Layer
from isr_kills.matrix import PLANS, kill_matrix, repeat_cell, summary, table, text

__all__ = [
    "HISTORIC",
    "PLANS",
    "Detection",
    "Historic",
    "Layer",
    "find_seed",
    "historic_table",
    "kill_matrix",
    "repeat_cell",
    "run_bug",
    "run_fix",
    "summary",
    "table",
    "text",
]
