"""The engine `native`, made for speed: the model is compiled by LLVM, and a state is a few 64-bit words.

Reading order: `exploration` (what is asked of the engine), `question` (one bit for each check), `search` (level by
level), `traces` (counterexamples from the levels).

- A state: `layout` (the place of each variable), `archive` (states in files).
- Its code: `assembly` (a function as text), `values` and `expressions` (operators), `ranges` and `weights` (what can be
  left out or named), `actions`, `kernels` (the module of an instance), `binding` and `machine` (as machine code).
- One state for many: `renaming` (of an orbit), `merging` (of all that make no difference).
- The visited set: `visited`, in fewer bytes `compressed_layout`.
- Memory: `space` (where states are, and what is done when there is no room), `buffers` (the arrays), `compressed`,
  `team` (the threads that share it).
- Beside the search: `simulation` (random walks), `graph` (liveness), `states` (a sample for invariants), `steps` (of
  states that somebody has), `sharding` (states divided among owners).
"""

from isr_check.native.exploration import explore

__all__ = ["explore"]
