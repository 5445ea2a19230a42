"""Verbs that run brokers and judge what clients saw: cluster, broker, topics, simulate, experiment, history."""
