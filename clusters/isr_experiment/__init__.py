"""The Jepsen experiment: real processes, partitions and clients, and the model's verdict beside the measured one.

Reading order: `cells` (what a row of a table is), `catalogue` (every experiment), `schedules` and `nemesis` (what
strikes, and when), `stage` (where it strikes, and the evidence that it did), `network` and `namespaces` (links that can
be cut), `power` (tails that are lost), `clients`, `recording`, `watching` (who does and sees what), `run` (one run),
`judging`, `model`, `conclusions` (what it shows), `conducting` (a whole experiment), `timeline` and `page`.

The format of the results is in docs/experiment.md.
"""
