"""The broker in a world that wishes them ill: one seed, one history.

`simulate(seed, config)` runs a cluster of brokers, each the `Runtime` that the server runs, with its logs on a disk in
memory and a clock that is wrong, against producers and consumers. Messages are late, lost, twice and overtaken, links
are cut in one direction, processes pause, crash, lose what was not flushed, and disks fail, fill up and rot. After each
step the promises of the model's `promises.safety` are checked. Then everything heals, and the cluster must converge. In
the second version settings change, single files of disks are damaged, and strangers call, too (docs/simulator.md).

The scheduler (in `world`) is the only source of time and of chance. The same seed gives the same trace, whatever
PYTHONHASHSEED says: `Outcome.trace` is a hash of every step.

Reading order: `simulate` (what a run is), `world` (events, network, processes, and how often a message is lost, late
or twice), `host` (one machine), `faults` (those that have a time), `clients`, `invariants` (what is promised),
`scenario` (a run as text), `histories` and `traces` (what is written down); of the second version `wider` (when what
strikes, and what is to be borne), `damage` (of files), `changes` (of settings), `strangers`. In runs of `reassigning`
partitions move, too.
"""
