"""The report: the guarantees matrix, stories, scenes and charts, made from run files and traces only.

The report knows run files, traces and the language. Which designs there are, and how a cell is explored, the command
line says.

Reading order: `matrix/` (which cells there are, and what was found in them), `material` (all that was found, where its
files lie), `sections/` (each section of the page, made from that), `report` (the page), `markdown` (the same as text).

- What sections compute: `availability` (what a quorum and an in-sync set cost), `latency`, `lagging`, `scenes`
  (scripted schedules), `traceability` (from promise to test).
- What draws: `html`, `charts`.
"""
