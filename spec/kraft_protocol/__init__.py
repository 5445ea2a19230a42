"""Kafka's own Raft as a model: what there is, what happens, what is promised, every design.

`spec/kraft_model.py` beside this package is today's design, put together from these parts. Reading order: `state`
(variables and bounds), `voter` (what becomes of a voter), `messages` (a request arrives, an answer comes back),
`elections` (pre-vote and vote), `leadership` (begin, resign, end), `replication` (fetch, append, truncate, commit),
`reconfiguration` (voters change), `snapshots` (logs that begin later), `faults`; then `promises`, `liveness` (what
must come to pass), `by_name` (the table of designs) and `quorum` (what all of them bring for the command line).

- `abstract_quorum`: the same quorum without its messages, a design of its own, and `refinement`: that this one takes no
  other steps. `proof`: why the abstract quorum keeps its promises.
- `room`: what a behaviour has that leaves room for the faults. `notice`: the known
  mistakes, and which bounds notice them. `directory_ids`: the setting that helps where a disk is lost.
- `designs/`: every other design, each today's with parts replaced.

An action is one input of one voter. A module may import those before it, never the other way; pyproject.toml has the
arrows.
"""
