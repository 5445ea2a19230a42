"""Verbs that show a trace: show, explain, minimise, scenes."""
