"""Make `clusters/isr_audit/answers.json`: `python -m tests.support.audit_answers`, about an hour on one core.

Decided answers whose design has not changed are kept, and a question that another run answers is not explored. A
question takes at most SECONDS and STATES, of the latter half where several things fail; where that is not enough its
answer is UNKNOWN. A restart of all with three replicas is too much to explore, and is proved by induction.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import cast

from insync_cli.main import main as insync
from insync_cli.proof.question import Report
from isr_audit.answers import Answer, answer_among, explored, loss_of_fewer, read_table, write_table
from isr_audit.questions import DECISIVE_VERDICTS, MOST_REPLICAS, Question, constants_of, stored_questions
from isr_check.engine import Limits, Verdict, silent

SECONDS, STATES = 600.0, 30_000_000


def proved(asked: Question) -> Answer:
    """What `insync prove` says within the bounds of the question: PROVED or UNKNOWN."""
    with tempfile.TemporaryDirectory() as folder:
        words = asked.proof_command(()).split()[1:]
        insync([*words, "--look", "0", "--seconds", "60", "--workers", "1", "--quiet", "--out", folder])
        report = cast("Report", json.loads((Path(folder) / "prove.json").read_text(encoding="utf-8")))
    (promise,) = report["promises"]
    verdict = Verdict.PROVED if promise["verdict"] == Verdict.PROVED else Verdict.UNKNOWN
    return Answer(asked, verdict.value, 0)


def main() -> None:
    known = [a for a in read_table() if a.verdict in DECISIVE_VERDICTS]
    for asked in stored_questions():
        several = sum(cast("int", asked.constants[c.name]) for c in constants_of(asked.design) if c.budget) > 1
        if answer_among(known, asked) is not None or (several and loss_of_fewer(known, asked) is not None):
            continue
        began = time.monotonic()
        if asked.constants["replicas"] == MOST_REPLICAS and cast("int", asked.constants["shutdowns"]) > 1:
            answer = proved(asked)
        else:
            answer = explored(asked, Limits(STATES // 2 if several else STATES, SECONDS), silent)
        known.append(answer)
        write_table(known)
        took = time.monotonic() - began
        print(f"{answer.verdict:<9} {answer.states:>11,} {took:6.1f} s  {answer.command}", flush=True)


if __name__ == "__main__":
    main()
