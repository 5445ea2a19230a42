"""`insync conform`: implementations of in-sync replication, in any language, driven along the edges of the model.

The implementation is the system under test (SUT). It answers one line of JSON with another, by the protocol of
docs/conform.md.

Driver: `conformance` asks for steps and compares the states after them; `edge_cover` chooses the steps; `model_rules`
finds the rule of the model that a difference breaks.
Protocol: `sut_messages` has the messages, `value_json` the values in them, `sut_client` the process that answers them.
Systems under test in Python: `sut_server` answers requests by calling an object; `core_sut` is that object for the
broker's cores, and `isr_processes.process_sut` the one for real broker processes.
"""
