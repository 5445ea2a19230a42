"""The broker: Kafka's in-sync-replica replication as cores without I/O, a log on disk, and what drives them.

Theory of operation
-------------------

A *core* is a plain immutable value: the replica of one partition (`replica`, which is `leader` or `follower`), a
broker that holds many of them (`node`), the controller (`controller`). It is handed one input at a time, together
with the time, and gives back itself as it is from now on and a tuple of effects:

    step = handle(replica, Fetch(...), now)      # inputs, messages
    step.core, step.effects, step.action         # effects; the name of the protocol's action, if it was one

A core has no clock, no socket and no file. When it wants to be woken it says so (`deadline`), and is then handed a
`Tick`. What it asks for is not done until an input says that it is: a replica that asked for a write *awaits* it, and
takes no other input until the write is reported; only then do its log, its watermark and its answers move. So a crash
between any two inputs is a crash that the protocol knows.

One input is one action of the protocol: a message delivered, a timer fired, a client's request, a disk done. The
functions that take such a step are called what the action is called.

Rooms
-----

- `core/`: what a broker decides, as values without I/O. Read `messages`, `inputs` and `effects` first (what is said),
  then `log_view` (what a core knows of a log), `leader`, `follower`, `replica`, `elections`, `controller`, `node`.
- `storage/`: what a broker keeps. `disk` is the interface; `segment`, `log`, `log_directory`, `checkpoints` and
  `metadata_log` are built on it.
- `wire/`: Kafka's protocol. `decoder` and `encoder` read and write frames by Kafka's schemas, `protocol` lists the
  versions that are served, and `requests` hands each request to the module for its API.
- Here, beside the rooms, is what drives them: `runtime` (cores and storage, without sockets or a clock), `server`
  (sockets and the clock), `links` and `conversations` (connections to other brokers), `trace` (what a process did).

What can be chosen is in `settings` and `designs`. docs/by-hand.md drives two cores in a page, and has the duties of
whoever drives them.

The names are Kafka's; where a rule comes from a KIP, its docstring says which.
"""
