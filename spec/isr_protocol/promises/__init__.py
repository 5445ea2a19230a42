"""What is promised, and what a verdict about it is worth.

Reading order: `safety` (of states and steps), `liveness` (of the future), `committed_log` (the log that a partition
refines); then `premises` (what must happen for a promise to say anything), `allowances` (what settings allow), `room`
(whether the bounds leave room for that, and for the faults that were asked for), `slack` (the same of liveness),
`worth` (all of it, put to one verdict).
"""
