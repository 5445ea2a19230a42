"""Traces of brokers against the model: is there a run of the model that says every line that the brokers wrote?

`validate(lives)` answers with `Validated` or `Rejected`: which line is no step of the model and which guard refuses it.

Read in this order: `trace_lines` and `line_values` (a trace taken apart), `trace_reader` (the lines in an order that no
cause contradicts), `replica_state` (what the lines so far leave of a replica), `model_step` (one step of the model from
a state that is known in part), `replica_steps` and `controller_steps` (which steps a line may be), `message_checks`
(what a message must repeat), `run_search` (a run through all lines), `refusal` (why a line is no step), `verdict`,
`validator`. For people: `reduction` and `simulated_rerun` make a rejected trace small, `failure_page` shows it,
`reproduction` writes it as a test.
"""

from isr_validate.trace_lines import Level
from isr_validate.validator import validate
from isr_validate.verdict import Rejected, Validated

__all__ = ["Level", "Rejected", "Validated", "validate"]
