"""Transactions (KIP-98, KIP-360, KIP-447): who may write in which transaction, and how it ends.

`machine` decides, `shard` keeps one partition of __transaction_state, `sending` carries the markers
to the partitions, `service` is the door.
"""
