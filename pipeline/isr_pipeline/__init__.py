"""Spark jobs for what one process cannot hold: explorations, histories, sweeps and trace datasets.

Only functions that need a session import pyspark, so that everything else works without it. docs/scale.md and
docs/pipeline.md say how to use these.

Reading order: `session` (starts Spark, or says what is missing for it), `explore` (the engine `spark`), `search` (its
levels), `tasks` (of a level), `runners` (who runs them: this process, or Spark).

- What tasks have: `task_kernels` (kernels where tasks run), `arrow_rows` (what they exchange), `bucket_states` and
  `mapped_files` (the visited set, on the local disk of whoever has it).
- What lasts: `locations` (folders of any store), `store` (what an exploration keeps in one).
- What is made of it: `counterexamples` (shortest paths to findings), `graph` (all states and steps as tables).
- Other jobs: `sweeps` (independent questions, one task each), `trace_datasets`, `trace_replays` (traces replayed on
  cores, or validated), `histories/` (the history checker for files of any size).
"""
