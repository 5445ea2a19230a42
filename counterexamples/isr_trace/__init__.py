"""Traces: behaviours of a model as files that can be read, shown, explained, minimised and told as a case.

Knows the language, never a model or an engine: whatever must evaluate is handed an evaluator.

Reading order: `trace` (what a trace is), `codec`, `tlc` and `itf` (as a file), `replay` (running it again),
`lasso` (what goes round for ever).

- Shown: `show`, `browse` (in a terminal), `scene` (one state as a picture), `diff` (what a step changed), `diagrams`.
- Explained: `reasons` (why a condition is false), `explain` (which steps were needed), `cause` (the step that took the
  guarantee away), `story` (all of it in five sentences).
- Made shorter: `minimise`.
- Kept: `cases` (the corpus), `case_folder` (one of it).
"""
