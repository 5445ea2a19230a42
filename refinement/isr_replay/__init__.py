"""The model and the broker's cores in lock-step: every edge of the model within its bounds is compared with the cores.

`replay(constants)` explores both together and compares every edge in both directions (`Replayed`). docs/conformance.md
says what that shows and what it does not. A state of the cores is a state of the model by one function, `abstraction`.

Read in this order: `system_state` (what a system of cores consists of), `abstraction` and `packed_states` (which state
of the model it is), `core_driver` (an input to a core, with a disk that answers at once), `inputs` (every input that
there is), `canonical_form` (what of a core does not count), `core_system` and `core_steps` (the cores as a transition
system), `environment` (the choices of clients, network and clocks), `replay`. `action_table` says in words which input
of which core is which action; docs/conformance.md prints it. `coverage` counts how much of all that was seen.
"""

from isr_replay.core_system import NoSuchCores
from isr_replay.replay import Difference, Kind, Mismatch, Replayed, replay

__all__ = ["Difference", "Kind", "Mismatch", "NoSuchCores", "Replayed", "replay"]
