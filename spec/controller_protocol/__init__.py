"""Controllers on a quorum, and the partition on which they decide: what there is, what happens, what is promised.

`spec/controller_model.py` beside this package is the design `kraft-controllers`, put together from these parts. It
takes the partition and its brokers from `isr_protocol`, and the quorum from `kraft_protocol.abstract_quorum`.

Reading order: `state` (variables), `metadata` (what a record says), `logs` (elections, copies, commits), `decisions`
(what a controller decides), `promises`, `by_name` (the table of designs) and `controllers` (what all of them bring for
the command line).

- `room`: what a behaviour has that leaves room for the faults. `notice`: the known mistakes, and which bounds notice
  them.
- `designs/`: every other design, each with parts replaced.

A module may import those before it, never the other way; pyproject.toml has the arrows.
"""
