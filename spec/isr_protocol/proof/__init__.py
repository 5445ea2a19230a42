"""The inductive invariant of today's protocol, and what is proved by it.

Reading order: `logs` (conjuncts about logs), `sets` (about the in-sync and the eligible replicas), `assignments` (about
who has a replica), `invariant` (all, as one), `calm` and `envelope` (what is added where less happens), `questions`
(what `insync prove` asks, and what refuted each question before: `cores.json`), `operations` (what it takes besides
where people work at a cluster).
"""
