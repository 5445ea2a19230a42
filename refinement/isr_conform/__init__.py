"""Any implementation, in any language, held to the model: the protocol of docs/conform.md and its two ends.

A system under test is a process that answers one line of JSON with another. `conformance` drives it along the edges of
the model, which `edge_cover` draws; `sut_client` speaks to the process in the words of `sut_messages` and `value_json`;
`outcome` says what came of it, and `model_rules` which rule of the model a difference breaks. `sut_server` is the other
end for implementations in Python: `core_sut` puts the broker's cores behind it.
"""
