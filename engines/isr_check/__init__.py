"""The engines: they know the language, never a model.

Reading order: `engine` (the contract: what every engine is asked, and what it answers), `family` (what a model brings
besides its designs).

- The oracle: `reference` (the language in plain Python), `explorer` (the plainest exploration with it).
- For speed: `native/` (LLVM kernels over packed states).
- Fewer states: `symmetry` (one for all that differ in names only), `reduction_rules` and `reduction` (one for all that
  differ in what makes no difference later).
- Promises about the future: `liveness`, `lasso` (their counterexamples), `liveness_reference` (the oracle for them).
- Single behaviours: `reachability` (whether a state can be reached), `best_first` (a search past milestones),
  `room_search` (whether bounds leave room for the faults asked for), `worth` (what takes a finding its worth),
  `mistake_table` (known mistakes that bounds notice), `sample` and `simulation` (random walks), `walk_estimate` (how
  much they have not met).
- Other designs: `mutation` (one guard dropped), `inlining` and `equivalence` (whether two do the same).
- Proofs: `smt/` (by induction), `certify` (a stored proof, checked as a whole), `smt_words` (the words of
  its queries), `opinions` (what solvers say of it).
- For other people's checkers: `export/` (TLA+ and Murphi).
"""
