"""The engines: they know the language, never a model.

engine                               the contract: what every engine is asked, and what it answers
reference -> explorer                the reference evaluator (the oracle), and the plainest exploration with it
native/                              the engine for speed: LLVM kernels over packed states
symmetry                             one state for all that differ in names only
reduction_rules -> reduction         one state for all that differ in what makes no difference later
liveness, lasso, liveness_reference  promises about the future, their counterexamples, and the oracle for them
best_first, room                     search for a behaviour; whether bounds leave room for the faults asked for
reachability, sample, mutation       whether a state can be reached; random walks; designs with one guard dropped
smt/                                 proofs by induction
certify, opinions                    a stored proof, checked again; what several solvers say of its queries
export/                              TLA+ and Murphi, for other people's checkers
"""
