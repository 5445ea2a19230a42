"""A design as terms of z3: types, operators, states and steps, also where a bound is left open.

Reading order: `logic` (z3 behind functions that fold), `values` (of the language, over terms), `shapes` (types under
constants), `ranges` (what is true of each value of a type), `sizes` and `extremes` (of sets whose sort is open),
`operators` (each of the language), `design_terms` (states and steps), `solver_values` (a state that was found, read).
"""
