"""Verbs that prove: prove, certify."""
