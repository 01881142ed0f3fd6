"""Transactions (KIP-98, KIP-360, KIP-447): which producer may write in a transaction, and how it
ends.

`machine` decides, `shard` stores one partition of __transaction_state, `sending` sends the markers
to the partitions, `service` is the entry point.
"""
