"""Verbs that show a trace.

Reading order: `show`, `pages` (the same as HTML), `explain` (why it violates its promise), `minimise`, `remedy` (what
to do about it), `scenes` (teaching scenes), `graph` (small state graphs).
"""
