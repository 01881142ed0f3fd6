"""Why a cluster cannot be reached, in one sentence: the same one in commands, clients and logs.

`strangers` identifies a server that is no broker, `reachability` watches the address of a client
that has no connection, and `unassigned` explains why a member of a group has no partitions.
"""
