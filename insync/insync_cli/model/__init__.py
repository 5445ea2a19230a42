"""Verbs that ask the model: designs, check, sample, export, mutate.

Reading order: `designs`, `check`, `exploration` (how it explores), `check_text` (what it prints), `sample`, `export`,
`mutate`, `guards` (what is on file about the parts that it drops).
"""
