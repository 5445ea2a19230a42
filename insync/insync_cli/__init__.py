"""The command line. Thin: it reads arguments, calls the packages that do the work, and prints.

A verb is a module with `parser(argv)` and `run(options)`; `main` finds it and turns what went wrong into one
sentence and an exit code. No protocol knowledge lives here: the options of a verb that explores are
generated from the constants of the designs.
"""
