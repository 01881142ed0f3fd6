"""Fetch: sessions (KIP-227), one pass over the partitions, the fast path."""
