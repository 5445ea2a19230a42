"""Every other design of controllers.

Reading order: `reports` (what was reported of them, each by its number, and what mends it), `sessions` (what is in a
controller's memory alone, with its reports), `busy_log` (brokers that wait to be unfenced), `one_controller` (each
committed decision beside those of a single one), `activation` (what a controller does when it becomes active and when
it is deposed, with its reports), `renouncing` (what it does after a failure of its own), `dropped_rules` (one rule
taken out).
"""
