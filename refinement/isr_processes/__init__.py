"""Real broker processes, with sockets, files and SIGKILL, driven along the edges of the model one action at a time.

`process_sut` is the system under test that `insync conform` drives (docs/conform.md). It calls `process_actions`, which
has a method for each action of the model. `process_control` starts, kills and commands the processes, and
`process_state` reads their memories and files as a state of the model. Each process runs `stepped_broker`: a broker
whose clock stands still and whose messages wait until the driver delivers them.
"""
