"""What ties the broker to the model: the cores do what the model says, nothing more and nothing less.

`replay(constants)` explores the cores and the model in lock-step and compares every edge (`Replayed`);
docs/conformance.md says what that shows, and what it does not. A state of the cores is a state of the model by one
function, `abstraction`.

Read in this order: `parts` (what a system of cores consists of), `abstraction` and `packing` (which state of the model
it is), `driving` (an input, and the disk at once), `inputs` (every input that there is), `canonical` (what of a core
does not count), `system` and `steps` (inputs remembered), `world` (the environment's choices), `replay`, and `table`,
which says in words what the others do and is printed into docs/conformance.md.

The other way, `validate(lives)` takes what brokers wrote and finds the model's steps: `lines`, `reading` and `saying`
(a trace taken apart), `held`, `stepping`, `replica_steps` and `controller_steps` (what a line may be), `searching`,
`verdict`, `validate`.
"""

from isr_refine.lines import Level
from isr_refine.replay import Difference, Kind, Mismatch, Replayed, replay
from isr_refine.system import NoSuchCores
from isr_refine.validate import validate
from isr_refine.verdict import Rejected, Validated

__all__ = [
    "Difference",
    "Kind",
    "Level",
    "Mismatch",
    "NoSuchCores",
    "Rejected",
    "Replayed",
    "Validated",
    "replay",
    "validate",
]
