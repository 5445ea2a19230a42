"""The report: the guarantees matrix, stories, scenes and charts, made from run files and traces only.

`plan` says which cells there are, `grid` what was found in them, `scenes` scripts schedules, `availability` computes
what a quorum and an in-sync set cost, `charts` draws it, `report` puts all into one page. Knows run files, traces and
the language; which designs there are, and how a cell is explored, the command line says.
"""
