"""Spark jobs for what one process cannot hold: explorations, histories, sweeps and trace datasets.

    session                             starts Spark, or says what is missing for it
    explore -> search -> tasks          the engine 'spark': its levels, and the tasks of a level
    runners                             who runs the tasks: this process, or Spark
    locations, store                    folders of any store; what an exploration keeps in one
    bucket_states                       the visited set of a bucket, on the local disk of whoever has it
    task_kernels, arrow_rows            kernels where tasks run; the rows that tasks exchange
    counterexamples, graph              shortest paths to findings; all states and steps as tables
    sweeps                              independent questions, one task each
    trace_datasets, trace_replays       datasets of traces; traces replayed on cores, or validated
    histories                           the history checker for files of any size

Only functions that need a session import pyspark, so that everything else works without it. docs/scale.md and
docs/pipeline.md say how to use these.
"""
