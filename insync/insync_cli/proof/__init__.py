"""Verbs that prove: prove, certify.

Reading order: `prove`, `question` (what is asked, and the report as data), `premises` (whether what is promised can
happen at all), `prove_text` (the report as text), `counterexamples` (to induction, as traces), `cross_check` (what was
proved is explored, too), `learnt` (what earlier proofs have), `proof_file` (stored), `certify` (and checked again),
`implications` (which property implies which, as a picture).
"""
