"""Real broker processes, with sockets, files and SIGKILL, driven along the edges of the model one action at a time.

Reading order: `process_sut` (the system under test that `insync conform` drives, docs/conform.md), `process_actions` (a
method for each action of the model), `process_control` (starts, kills and commands the processes), `process_state`
(their memories and files as a state of the model), `stepped_broker` (what each process runs: a broker whose clock
stands still and whose messages wait until the driver delivers them).
"""
