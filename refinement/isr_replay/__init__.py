"""The lock-step replay: every edge of the model within its bounds is taken by the broker's cores, and compared.

`replay(constants)` explores model and cores together and compares each edge in both directions. docs/replay.md says
what that shows and what it does not.

Reading order: `system_state` (the parts of a system of cores), `abstraction` and `packed_states` (which state of the
model it is), `core_driver` (an input to a core, with a disk that answers at once), `inputs` (every input that there
is), `canonical_form` (what of a core does not count), `core_system` and `core_steps` (the steps of single cores),
`environment` (the choices of clients, network and timers), `replay`, `action_table` (which input is which action),
`coverage` and `coverage_runs` (how much of model and cores was seen).
"""

from isr_replay.core_system import NoSuchCores, check_cores
from isr_replay.replay import Difference, Kind, Mismatch, ReplayResult, replay

__all__ = ["Difference", "Kind", "Mismatch", "NoSuchCores", "ReplayResult", "check_cores", "replay"]
