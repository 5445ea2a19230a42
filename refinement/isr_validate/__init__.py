"""The trace validator: is there a run of the model in which the brokers write exactly the lines of a trace?

`validate(lives)` returns a `Validation`; its `rejected` is the first line that is no step of the model, with the guard
that forbids it. docs/validate.md says what is checked.

Reading order: `trace_values` and `trace_lines` (the parts of a line), `trace_reader` (lines in causal order, by owner),
`replica_state` (the states of owners), `model_step` (one step of the model), `replica_steps` and `controller_steps` (a
line as a step), `message_checks` (what messages must say), `validator` (the search), `verdict`.

- Traces of Apache Kafka: `kafka_trace` (their lines), `kafka_reader`, `kafka_design` (what Kafka does in smaller
  steps), `kafka_steps`.
- For a rejected trace: `false_guards` (why it is no step), `reduction` (a smaller trace), `failure_report` (as HTML, as
  a diagram, and as a test).
"""

from isr_validate.kafka_trace import read_traces
from isr_validate.trace_lines import Level
from isr_validate.validator import validate
from isr_validate.verdict import Rejection, Validation

__all__ = ["Level", "Rejection", "Validation", "read_traces", "validate"]
