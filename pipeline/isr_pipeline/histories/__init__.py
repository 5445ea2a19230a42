"""Histories of any size: the checks of isr_anomalies as Spark jobs, with the same answers.

    from isr_pipeline import session
    from isr_pipeline.histories import check_files

    with session.running() as spark:
        [one] = check_files(spark, [Path("history.jsonl")], Path("out"))
        print(one.answer.verdict)

Reading order: `chunks` (files in pieces whose lines have numbers), `plain` (lines of one send or poll), `pairing`
(lines to operations, process by process), `shares` (one partition, judged), `cycles` (what only several partitions
show), `availability`, `jobs` (all in order).

A partition is judged by one task, and has to fit into it; nothing else has to fit anywhere. The driver gets what each
partition found, a bit for each of 65536 blocks of lines, and figures.
"""

from isr_pipeline.histories.jobs import Checked, Unreadable, check_files

__all__ = ["Checked", "Unreadable", "check_files"]
