"""Help for whoever works on an invariant: candidate conjuncts, and the graph of which property implies which."""
