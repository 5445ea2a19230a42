"""Verbs that hold an implementation to the model.

Reading order: `replay` (the cores), `conform` (anybody's), `validate` (traces of brokers), `traces` (datasets),
`coverage` and `kills` (what the checks see), `kafka` (its releases), `released_traces` (what its classes are
told), `kafka_rows` (what of it was driven),
`found` (bugs found here), `annotations` (what of it GitHub shows beside a change).
"""
