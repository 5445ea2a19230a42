"""The report: the guarantees matrix, stories, scenes and charts, made from run files and traces only.

`matrix` says which cells there are, and what was found in them; `sections` makes each section of the page from what was
found (`material`); `report` puts them into one page, and `markdown` into one text. `scenes` scripts schedules;
`availability` computes what a quorum and an in-sync set cost; `charts` and `html` draw. The report knows run files,
traces and the language; which designs there are, and how a cell is explored, the command line says.
"""
