"""Make `clusters/isr_audit/release_losses.json`: `python -m tests.support.release_losses`, half an hour on one core.

Answers whose design has not changed are kept. An exploration takes at most SECONDS and STATES; where that is not enough
its answer is UNKNOWN.
"""

import time

from isr_audit.answers import Answer, engine_of, write_table
from isr_audit.release_losses import TABLE, questions, release_answers
from isr_check.engine import Limits, Verdict, silent

SECONDS, STATES = 300.0, 60_000_000


def main() -> None:
    known = list(release_answers())
    for asked in questions():
        if any(a.question == asked for a in known):
            continue
        began = time.monotonic()
        found = engine_of(asked)(asked.instance(), (asked.promise,), Limits(STATES, SECONDS), silent)
        finding = found.finding(asked.promise)
        verdict = Verdict.UNKNOWN if finding.verdict is Verdict.BUDGETED else finding.verdict
        path = finding.path if verdict is Verdict.VIOLATED else None
        known.append(Answer(asked, verdict.value, found.distinct, path))
        write_table(known, TABLE)
        took = time.monotonic() - began
        print(f"{verdict.value:<9} {found.distinct:>11,} {took:6.1f} s  {asked.command()}", flush=True)


if __name__ == "__main__":
    main()
