"""Help for whoever works on an invariant: candidate conjuncts, and the graph of which property implies which.

Reading order: `vocabulary` (conditions of a design), `samples` (states on which they are decided), `templates` and
`provenance` (candidates made of them), `suggestions` (those that strengthen an invariant), `houdini` (the largest
inductive set of many), `derivation` (an invariant from nothing), `property_graph` and `property_drawing`.
"""
