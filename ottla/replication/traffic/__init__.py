"""The bytes that go through the partitions of a broker: counted, and limited (KIP-73)."""
