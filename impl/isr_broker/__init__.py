"""The broker: Kafka's in-sync-replica replication as cores without I/O, a log on disk, and what drives them.

Theory of operation
-------------------

A *core* is a plain immutable value: the replica of one partition (`core.replica`, a leader or a follower), a broker
that holds many of them (`core.node`), the controller (`core.controller`). It is handed one input at a time, together
with the time, and gives back itself as it is from now on and a tuple of effects:

    from isr_broker.core.inputs import LearnMetadata, Produce
    from isr_broker.core.messages import PartitionMetadata, TopicPartition
    from isr_broker.core.record_batch import new_batch
    from isr_broker.core.replica import handle
    from isr_broker.core.replica_state import Replica
    from isr_broker.settings import Settings

    tp = TopicPartition("orders", 0)
    replica = Replica(partition=tp, me=1, broker_epoch=1, settings=Settings.from_properties({}))
    alone = PartitionMetadata(partition=tp, replicas=(1,), isr=frozenset({1}), leader=1)
    step = handle(replica, LearnMetadata(metadata=alone), now=0)
    print(step.core, step.effects)      # it is to lead, and first has the disk note its epoch
    print(step.action)                  # the name of the protocol's action, if it was one

A core has no clock, no socket and no file. When it wants to be woken it says so (`deadline`), and is then handed a
`Tick`. What it asks for is not done until an input says that it is: a replica that asked for a write *awaits* it, and
takes no other input until the write is reported; only then do its log, its watermark and its answers move. So a crash
between any two inputs is a crash that the protocol knows.

One input is one action of the protocol: a message delivered, a timer fired, a client's request, a disk done. The
functions that take such a step are called what the action is called.

Reading order: `core/` (what a broker decides, as values without I/O), `storage/` (what it keeps), `wire/` (Kafka's
protocol).

- What drives these: `runtime` (cores and storage, without sockets or a clock), `environment` (what it needs of the
  world), `server` (sockets and the clock), `listener_names` and `listeners` (where it listens, and for whom), `flow`
  (how much of clients may be in memory), `memory`, `links` and `conversations` (connections to other brokers),
  `__main__` (one broker as a process).
- A voter of the metadata quorum: `quorum_settings`, `voter_runtime`, `voter_server`, `voter` (one as a process).
- A controller that stands on it: `controller_admin` (what admins ask it), `controller_runtime`, `controller_server`,
  `controller` (one as a process).
- What a process did: `trace`, `trace_reader` (the same, read again), `snapshot` (a state as JSON).
- What Kafka's own controllers have on their disks: `metadata_image`.
- What can be chosen: `designs` (Kafka's history as values), `settings`, `setting_docs`, `topic_configs`.

docs/by-hand.md drives two cores in a page, and has the duties of whoever drives them.

The names are Kafka's; where a rule comes from a KIP, its docstring says which.
"""
