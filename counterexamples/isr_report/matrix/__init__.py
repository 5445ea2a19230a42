"""The guarantees matrix: which cells it has, what was found in them, and what their runs exercised."""
