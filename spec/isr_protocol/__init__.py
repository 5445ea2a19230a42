"""The replication of one partition, as a model: what there is, what happens, what is promised, and every design.

`spec/isr_model.py` beside this package is today's design, put together from these parts. Reading order: `state`
(variables and bounds), `replication` (fetch, append, truncate), `membership` (the ISR), `metadata` (what brokers hear),
`elections`, `faults`; then `by_name`, the table of designs, and `in_sync_replicas`, what all of them bring for the
command line.

- `promises/`: what is promised, and what a verdict is worth.
- `designs/`: every other design, each today's with parts replaced.
- `planted/`: bugs that are planted to be found.
- `proof/`: the inductive invariant, and what is proved by it.

An action is one input of one core: a message delivered, a timer fired, a client's request, a step of the controller, a
fault. A module of an upper room may import a lower one, never the other way; pyproject.toml has the arrows.
"""
