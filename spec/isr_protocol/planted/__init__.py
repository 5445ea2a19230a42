"""Bugs that are planted to be found: `actions` (the actions that hold them), `bugs` (each by its name).

`mistakes` are what is planted to see which bounds notice it, those bugs among them, and `notice` judges by them.
"""
