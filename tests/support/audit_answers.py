"""Make `impl/isr_audit/answers.json`: `python -m tests.support.audit_answers`, about half an hour on one core; or, with
files that `insync prove ... --out DIR` left as `DIR/prove.json`, add what they prove.

Decided answers whose design has not changed are kept, and a question that another run answers is not explored. A
question takes at most SECONDS and STATES, of the latter half where several things fail; where that is not enough its
answer is UNKNOWN.
"""

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from insync_cli.proof.question import Report
from isr_audit.answers import Answer, answer_among, explored, loss_of_fewer, read_table, write_table
from isr_audit.questions import DECIDED, LOSS, Question, constants_of, stored_questions
from isr_check.engine import Limits, Verdict, silent
from isr_designs import DESIGNS
from isr_lang.instance import check_constants

SECONDS, STATES = 600.0, 30_000_000


def proof(report: Report) -> Answer:
    """What a report of `insync prove` says of the promise that audits ask; ValueError where it proves it not."""
    design = DESIGNS[report["design"]]
    (promise,) = (line for line in report["promises"] if line["name"] == LOSS)
    if promise["verdict"] != Verdict.PROVED or report["model_hash"] != design.model_hash():
        raise ValueError(f"{report['command']} does not prove {LOSS} of the model as it is")
    given = {name: value for name, value in report["bounds"].items() if value is not None}
    still_open = tuple(name for name, value in report["bounds"].items() if value is None)
    constants = dict(check_constants(design, given))
    return Answer(Question(design.name, LOSS, constants), Verdict.PROVED.value, 0, None, still_open)


def with_proofs(files: Iterable[str]) -> None:
    """The table with these proofs, and without what was left undecided and they decide."""
    found = [proof(cast("Report", json.loads(Path(file).read_text(encoding="utf-8")))) for file in files]
    known = [*found, *(a for a in read_table() if not any(a == one for one in found))]
    write_table([a for a in known if a.verdict in DECIDED or answer_among(found, a.question) is None])


def main() -> None:
    if sys.argv[1:]:
        return with_proofs(sys.argv[1:])
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
    return None


if __name__ == "__main__":
    main()
