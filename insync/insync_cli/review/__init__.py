"""Verbs for a design review: matrix, report.

Reading order: `matrix`, `matrix_spark` (all its cells in one job), `report`, `report_pages` (what it links to).
"""
