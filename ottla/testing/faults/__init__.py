"""Faults that the clients of a test cluster see."""
