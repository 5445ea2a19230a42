"""Verbs that hold an implementation to the model: replay, conform, validate, kills, coverage, traces."""
