"""Consumer groups of the classic protocol: membership, rebalances, committed offsets.

`machine.py` and the modules it calls are pure; `shard.py` performs their effects; `service.py` is
the entry point.
"""
