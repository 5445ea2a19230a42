"""Real broker processes, with sockets, files and SIGKILL, driven along the edges of the model one action at a time.

`process_sut` is a system under test of docs/conform.md. `process_control` starts, kills and steps the processes,
`process_actions` has one method for each action of the model, `process_state` reads memories and files as a state of
the model, and `stepped_broker` is the process itself: a broker whose clock stands still and whose messages wait.
"""
