"""Bugs that are planted to be found, and what it says of bounds which of them these notice.

Reading order: `actions` (the actions that hold them), `bugs` (each by its name), `mistakes` (what is planted to see
which bounds notice it, those bugs among them), `notice` (which of them bounds would notice).
"""
