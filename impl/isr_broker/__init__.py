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

Read in this order: `settings` and `designs` (what can be chosen), `messages`, `inputs`, `effects` (what is said),
`epochs` and `log_view` (what a core knows of a log), `leader`, `follower`, `replica`, `elections`, `controller`,
`node`. Then the disk: `disk` (the interface), `record_batch`, `segment`, `log`, `checkpoints`, `log_directory`. Then:
`runtime` (a broker without sockets), `decoder` and `wire` (Kafka's protocol), `requests` and `groups` (its APIs),
`peers` (what brokers say to each other), `server` (sockets and the clock).

The names are Kafka's; where a rule comes from a KIP, its docstring says which.
"""
