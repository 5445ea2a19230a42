"""Every design but today's: today's with parts replaced.

Reading order, from the past on: `zookeeper` and `quorum` (other ways to elect and to commit), `history` (what Kafka
did, release by release), `dropped_rules` (one rule taken out), `early_watermark` (bugs of the watermark). Each module
that makes designs lists them as DESIGNS.

- Found here in today's Kafka, each with its mend: `wider_state` (the variables that they need), `leader_bugs`,
  `raised_minimum`, `removed_replica`, `forgotten_proposal`.
- Reported by others: `reassignment`, `registration`, `directories`, `cleared_elr`.
- Proposed, and not built: `proposals`, `unclean_recovery`.
- Kafka as it is released, with all that was found in it: `old_metadata`, `releases`, `replica_directory`,
  `earlier_releases`.
- Where less happens: `calm` and `unclean_stops` (today's), `operations_within_envelope`.
- Added to designs by their tests: `late_metadata`, `new_directory`.
"""
