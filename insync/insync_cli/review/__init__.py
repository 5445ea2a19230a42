"""Verbs for a design review: matrix, report."""
