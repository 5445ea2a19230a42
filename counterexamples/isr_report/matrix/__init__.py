"""The guarantees matrix.

Reading order: `plan` (which cells it has), `grid` (what was found in them), `coverage` (what their runs exercised),
`since` (what changed since an earlier report).
"""
