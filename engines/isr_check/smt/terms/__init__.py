"""A design as terms of z3: types, operators, states and steps, also where a bound is left open."""
