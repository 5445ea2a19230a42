"""Traces: behaviours of a model as files that can be read, shown, explained, minimised and told as a case.

Knows the language, never a model or an engine: whatever must evaluate is handed an evaluator.
"""
