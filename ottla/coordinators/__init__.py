"""Floor 3: coordinators of groups and of producer ids, on one runtime: decide, append, replay, answer.

`runtime.py` is the shell: it owns partitions, timers and futures. What it runs are pure machines in
`group/`. Nothing here knows sockets, files or the replication engine; see `ports.py`.
"""
