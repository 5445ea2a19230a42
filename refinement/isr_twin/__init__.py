"""One unmodified broker, and everything else played to it over TCP: its quorum, its peers, its clients.

Reading order: `broker_sut` (the system under test that `insync conform` drives, docs/own-broker.md), `broker_steps` (a
method for each action of the model that touches a broker), `surroundings` (what is played: the quorum, one topic at a
time, a peer), `metadata_log` (the quorum's log in memory), `broker_process` (starts, kills and starts again), `sockets`
(connections, and messages that are held until somebody takes them).
"""
