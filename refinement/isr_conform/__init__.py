"""`insync conform`: implementations of in-sync replication, in any language, driven along the edges of the model.

The implementation is the system under test (SUT). It answers one line of JSON with another, by the protocol of
docs/conform.md.

Reading order: `conformance` (all of it), `conformance_result` (what is asked, and what comes of it).

- Driver: `edge_cover` (which steps are asked for), `driving` (in which ways), `compared_run` (the states after them
  compared), `model_rules` (the rule that a difference breaks), `switches` (actions that a setting switches
  on), `control` (what one system shows, asked of another), `broken_promises` (those that break on the way),
  `stories` (stored traces, told step by step).
- Protocol: `sut_messages`, `value_json` (the values in them), `sut_client` (the process that answers them),
  `read_ahead` (requests that are sent before it is their turn).
- Systems under test in Python: `sut_server` (answers requests by calling an object), `kit` (the rest of an adapter),
  `core_sut` (the object for the broker's cores, and `isr_processes.process_sut` is the one for real broker processes),
  `voter_sut` (a quorum of the voter's cores).
"""
