"""What outgrows one process: the same questions as Spark jobs, with the same answers.

`session` starts Spark, or says what is missing for it. Only what needs a session imports pyspark, and only when called,
so that everything else works without.
"""
