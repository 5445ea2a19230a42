"""Histories of any size: the checks of isr_anomalies as Spark jobs, with the same answers.

    import json
    import os
    from pathlib import Path

    from isr_pipeline import session
    from isr_pipeline.histories import check_files

    polls = {"process": "one", "f": "poll"}
    lines = [{"time": 1, "type": "invoke"}, {"time": 2, "type": "ok", "records": {"orders-0": [[0, "a"], [0, "b"]]}}]
    Path("history.jsonl").write_text("".join(json.dumps(polls | line) + os.linesep for line in lines))
    with session.running() as spark:
        [one] = check_files(spark, [Path("history.jsonl")], Path("out"))
        print(one.answer.verdict)

A partition is judged by one task, and has to fit into it; nothing else has to fit anywhere. The driver gets what each
partition found, a bit for each of 65536 blocks of lines, and figures.

Reading order: `rows` (what tasks exchange), `chunks` (files in pieces whose lines have numbers), `plain` (lines of one
send or poll), `pairing` (lines to operations, process by process), `shares` (one partition, judged), `cycles` (what
only several partitions show), `availability`, `tables` (the results), `jobs` (all in order).
"""

from isr_pipeline.histories.jobs import CheckedHistory, Unreadable, check_files

__all__ = ["CheckedHistory", "Unreadable", "check_files"]
