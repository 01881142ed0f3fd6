"""Consumer groups of the consumer protocol (KIP-848): the coordinator assigns, members reconcile.

What a group is changes by replayed records only (`replay.py`). Every other module is pure: it looks at a
group and says what to write, what to answer and which deadlines to set; `groups.py` performs it.
"""
