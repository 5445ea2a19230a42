"""The Jepsen experiment: real processes, partitions and clients, and the model's verdict beside the measured one.

Reading order, the format of the results being in docs/experiment.md:

- What is tried: `cells` (what a row of a table is), `catalogue` (every experiment), `systems` (whose brokers).
- What strikes, and when: `schedules`, `nemesis` (by a seed).
- Where: `stage` (with the evidence that it did strike), `network`, `namespaces` (links that can be cut), `power` (tails
  that are lost).
- Who does and sees what: `clients`, `recorder` (one history of all), `watch` (the controller), `holders` (of records).
- One run and a whole experiment: `cell_run`, `existing_cluster` (that nobody harms), `campaign` (all cells).
- What it shows: `verdicts` (of a run), `waits`, `model` (what the model says), `conclusions` (of a cell).
- Pictures: `timeline`, `stalls`, `page`.
"""
