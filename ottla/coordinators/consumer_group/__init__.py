"""Consumer groups of the consumer protocol (KIP-848): the coordinator assigns, members reconcile.

Only replayed records change a group (`replay.py`). Every other module is pure: it reads a group and
returns the records to write, the response and the deadlines; `groups.py` performs them.
"""
