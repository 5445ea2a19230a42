"""Verbs that ask the model: designs, check, sample, export, mutate."""
