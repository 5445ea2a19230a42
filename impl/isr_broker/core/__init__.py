"""What a broker decides: immutable values without I/O, clock or chance; one input gives the next value and its effects.

- What is said: `messages` (between brokers), `inputs` (to a core), `effects` (from a core).
- One partition: `leader`, `follower`, `truncation` and `watermark` make up `replica`; `replica_state` is its state.
- One broker: `node` routes inputs to its replicas. The controller: `controller`, which asks `elections`.
- What cores know of data: `record_batch`, `log_view` (a log's ends, epochs and producers), `producers`, `topics`.
- `message_json` and `stamps`: messages as bytes, and with the marks that traces need.
"""
