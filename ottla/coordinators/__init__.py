"""Layer 3: coordinators of groups, transactions and producer ids: decide, append, replay, respond.

`runtime.py` is the shell with partitions, timers and futures; it runs pure state machines. No
module here uses sockets, files or the replication engine directly; see `ports.py`.
"""
