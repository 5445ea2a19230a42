"""Bugs that are planted to be found: `actions` (the actions that hold them), `bugs` (each by its name)."""
