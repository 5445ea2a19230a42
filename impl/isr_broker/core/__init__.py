"""What a broker decides: immutable values without I/O, clock or chance; one input gives the next value and its effects.

Reading order: `messages` (between brokers), `inputs` (what a core is told), `effects` (what it asks for).

- What cores know of data: `log_view` (a log's ends, epochs and producers), `record_batch`, `batch_records`,
  `producers`.
- One partition: `replica_state`, `leader`, `watermark`, `follower`, `truncation`, `deletion`, `replica` (which of them
  takes an input).
- The controller: `controller_state`, `elections`, `topic_changes`, `reassignments`, `controller`.
- One voter of the metadata quorum: `quorum_messages`, `voter_state`, `voter`.
- One broker: `topics`, `node` (routes inputs to its replicas).
- On their way: `message_json` (messages as bytes), `stamps` (with the marks that traces need).
"""
