"""Make `impl/isr_audit/answers.json`: `python -m tests.support.audit_answers`, about half an hour on one core.

Decided answers whose design has not changed are kept, and a question that another run answers is not explored. A
question takes at most SECONDS and STATES, of the latter half where several things fail; where that is not enough its
answer is UNKNOWN.
"""

import time
from typing import cast

from isr_audit.answers import answer_among, explored, loss_of_fewer, read_table, write_table
from isr_audit.questions import DECIDED, constants_of, stored_questions
from isr_check.engine import Limits, silent

SECONDS, STATES = 600.0, 30_000_000


def main() -> None:
    known = [a for a in read_table() if a.verdict in DECIDED]
    for asked in stored_questions():
        several = sum(cast("int", asked.constants[c.name]) for c in constants_of(asked.design) if c.budget) > 1
        if answer_among(known, asked) is not None or (several and loss_of_fewer(known, asked) is not None):
            continue
        began = time.monotonic()
        answer = explored(asked, Limits(STATES // 2 if several else STATES, SECONDS), silent)
        known.append(answer)
        write_table(known)
        took = time.monotonic() - began
        print(f"{answer.verdict:<9} {answer.states:>11,} {took:6.1f} s  {asked.command()}", flush=True)


if __name__ == "__main__":
    main()
