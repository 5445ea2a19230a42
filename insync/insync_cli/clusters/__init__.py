"""Verbs that run brokers and judge what clients saw: cluster, broker, topics, simulate, experiment, history, audit,
bugs, and drill.

Reading order: `cluster`, `broker`, `topics`, with `systems` (whose brokers) and `settings` (of brokers).

- In one process: `simulate`.
- Under faults: `experiment`, `bootstrap` (on a cluster that is there already).
- What clients saw: `history`, `history_text`, `history_spark`.
- What a cluster can lose: `cluster_source` (what was told of it), `metadata_source` (by a controller's files),
  `audit`, `audit_text`, `audit_short`, `audit_brokers` (broker by broker), `audit_page`, `audit_metrics`,
  `audit_server`.
- What a release is known to lose: `bugs`.
- What is lost by steps: `drill`, `drill_text`, `drill_commands`, `drill_page`.
"""
