"""What outgrows one process: the same questions as Spark jobs, with the same answers (docs/scale.md).

    session                     starts Spark, or says what is missing for it; used by everything here
    explore -> search -> tasks  exploration: the engine 'spark', its levels, what a task of a level does
    owned, store, kit, rows     a bucket's visited set, the folder, kernels where tasks run, what passes between tasks
    runners                     who does the tasks: this process, or Spark
    paths, graph -> decode      counterexamples; all states and steps as tables

Only what needs a session imports pyspark, and only when called, so that everything else works without.
"""
